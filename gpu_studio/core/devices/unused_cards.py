"""Cards that cannot be used for one reason, and all that is known of it: marks, words, evidence."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.devices import CUDA_BUILD, MAKERS
from gpu_studio.core.devices.finding import continued, restart
from gpu_studio.core.devices.gpu_chips import gpu_chip
from gpu_studio.core.devices.pc_facts import architecture_of
from gpu_studio.core.devices.signs import SANDBOXES, Signs
from gpu_studio.core.error_table import Advice, error_table
from gpu_studio.core.maker_builds import BuildVerdict
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts
    from gpu_studio.core.devices.signs import DeviceFile
    from gpu_studio.core.messages.engine_messages import StartError

# Where the makers say what their software needs.
MAKER_PAGES = {
    "AMD": "https://rocm.docs.amd.com/en/latest/compatibility/compatibility-matrix.html",
    "Intel": "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html",
}
_WINDOWS_DRIVER_PAGES = {
    "AMD": "https://www.amd.com/en/support/download/drivers.html",
    "Intel": "https://www.intel.com/content/www/us/en/download-center/home.html",
}
PLATFORMS = {"AMD": "PyTorch for ROCm", "Intel": "PyTorch for XPU"}
# "Prerequisites" of TheRock's RELEASES.md, and of PyTorch's page for Intel.
NEEDS = {
    ("AMD", "Linux"): "needs the driver amdgpu, and your user in the groups render and video",
    ("AMD", "Windows"): "needs AMD's newest Adrenalin driver",
    ("Intel", "Linux"): "needs Intel's Level Zero (the package libze-intel-gpu1)",
    ("Intel", "Windows"): "needs Intel's newest graphics driver",
}
GIVE_CARD = {
    "docker": Advice("Start the container again with --gpus all."),
    "podman": Advice("Start the container again with --device nvidia.com/gpu=all."),
    "apptainer": Advice("Start the container again with --nv."),
    "lxc": Advice("Add the card and the driver's library to the container's configuration."),
    "kubernetes": Advice("Let the pod ask for the resource nvidia.com/gpu."),
    "container": Advice("Start the container again with access to the card."),
    "any": Advice("Start the container with access to the card, or reinstall the driver."),
}
"""How a container is given a card of NVIDIA's: by its own documentation."""
_MODULES = {"AMD": ("amdgpu",), "Intel": ("xe", "i915")}
_GROUP = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_FILE = re.compile(r"/dev/[A-Za-z0-9/_-]{1,40}")
_SLOT = re.compile(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\b", re.IGNORECASE)
_MISMATCH = 803
_NO_MODESETTING = "nomodeset"
_WITH_XE = ("Xe2", "Xe3")
_LIBRARY_VERSION = re.compile(r"libcuda\.so\.(\d{3}\.\d+(?:\.\d+)?)$")


class UnusedCards:
    """Cards of one maker that cannot be used for one reason, and all that is known about it.

    Args:
        facts: the PC.
        cards: the cards; none if the system shows none.
        maker: whose they are.
        error: the error with which PyTorch did not start, if it did not.
        reason: what PyTorch says about it; empty if PyTorch is not in question.
    """

    def __init__(
        self,
        facts: PcFacts,
        cards: Sequence[Device],
        maker: str = "NVIDIA",
        error: StartError | None = None,
        reason: str = "",
    ) -> None:
        self.facts, self.cards, self.maker = facts, cards, maker
        self.error, self.reason = error, reason
        self.code = error.code if error is not None else None
        self.driver = facts.driver
        self.knows_signs = facts.inventory.signs is not None
        self.signs = facts.inventory.signs or Signs()
        self.is_boxed = bool(self.signs.sandbox)
        self.is_on_linux = facts.system == "Linux" and not facts.inventory.is_wsl

    @property
    def is_of_one(self) -> bool:
        """Whether the case is about a single card of the list of devices."""
        return len(self.cards) == 1 and self.cards[0].identity in {
            card.identity for card in self.facts.inventory.cards
        }

    # ── words of the rows ────────────────────────────────────────────────────────────────────

    @property
    def names(self) -> str:
        """The cards: ``2 × RTX 3090 and GT 1030``; words for what the system does not show."""
        counts = Counter(card.short_name for card in self.cards)
        names = [f"{count} × {name}" if count > 1 else name for name, count in counts.items()]
        return listed(names) or f"{self.maker} card"

    @property
    def subject(self) -> str:
        is_known = bool(self.cards)
        return f"Your {self.names} is installed, but not ready" if is_known else "No card answers"

    @property
    def sandbox(self) -> str:
        return SANDBOXES.get(self.signs.sandbox, "the container")

    @property
    def lender(self) -> str:
        return next((card.lender for card in self.cards if card.lender), "")

    @property
    def holders(self) -> str:
        """The kernel's drivers that hold the cards in the place of the maker's own."""
        own = (None, "", nvidia.KERNEL_DRIVER)
        found = {card.kernel_driver or "" for card in self.cards if card.kernel_driver not in own}
        return listed(sorted(found))

    @property
    def distribution(self) -> str:
        return self.facts.inventory.distribution

    @property
    def is_alone(self) -> bool:
        """Whether PyTorch uses other cards of the maker's: only what is of this card counts."""
        return self.facts.engine is not None and self.facts.engine.cuda_available

    @property
    def version(self) -> str:
        return self.driver.version or "in use"

    @property
    def trouble(self) -> str:
        return continued(self.driver.error or "")

    @property
    def restart(self) -> str:
        return restart(self.facts)

    @property
    def driver_page(self) -> str:
        return nvidia.driver_page(self.facts)

    @property
    def install(self) -> str:
        return self.driver_page if self.is_boxed else nvidia.install_driver(self.facts)

    @property
    def where(self) -> str:
        """After "the driver": where it is, if that is not here."""
        if self.facts.inventory.is_wsl:
            return " in Windows"
        return " on the PC itself" if self.is_boxed else ""

    @property
    def to_install(self) -> str:
        """Which driver of NVIDIA's to install: the last one for cards that need an old one."""
        facts = self.facts
        # A driver for a card that PyTorch cannot use may be too old for a card that it can use.
        wanted = [card for card in self.cards if facts.any_build(card)] or self.cards
        old = [card for card in wanted if facts.last_driver(card)]
        last = {facts.last_driver(card) for card in old}
        if len(last) == 1:
            kinds = listed(sorted({architecture_of(card) or "" for card in old}))
            return f"Install NVIDIA driver {last.pop()}, the last for {kinds} cards."
        has_tool = self.is_on_linux and not self.is_boxed
        own_tool = " with your system's driver tool" if has_tool else self.where
        return f"Install the NVIDIA driver{own_tool}."

    @property
    def module_need(self) -> str:
        """Which of NVIDIA's two kernel modules the cards need, where that is not the one that runs.

        A module that holds a card has accepted it.
        """
        for card in self.cards:
            kind = architecture_of(card)
            needs_open = nvidia.needs_open_module(kind)
            if needs_open is None or needs_open is self.signs.is_open_module or card.kernel_driver:
                continue
            module = "open" if needs_open else "proprietary"
            return f"a {kind} card needs the driver's {module} kernel module."
        return ""

    @property
    def hidden_by(self) -> str:
        """A variable that leaves no card to PyTorch; empty if none surely does."""
        return hiding_variable(self.kind, self.facts.inventory.variables, len(self.cards))

    @property
    def hidden_value(self) -> str:
        return self.facts.inventory.variables.get(self.hidden_by, "")

    @property
    def unset(self) -> str:
        name = self.hidden_by
        return f"set {name}=" if self.facts.system == "Windows" else f"unset {name}"

    @property
    def kind(self) -> str:
        return next((kind for kind, maker in MAKERS.items() if maker == self.maker), "")

    @property
    def file(self) -> DeviceFile | None:
        """The first device file of the cards that this user may not open."""
        return next((one for one in self.files() if not one.may_open), None)

    @property
    def file_name(self) -> str:
        """Its name, which is also part of a command: another PC may send any text."""
        name = self.file.name if self.file is not None else ""
        return name if _FILE.fullmatch(name) else "/dev"

    @property
    def group(self) -> str:
        group = self.file.group if self.file is not None else ""
        return group if _GROUP.fullmatch(group) else ""

    @property
    def modules(self) -> str:
        """The kernel's drivers for such cards that run, though they have not taken these."""
        return listed([one for one in _MODULES.get(self.maker, ()) if one in self.signs.modules])

    @property
    def options(self) -> str:
        """What the kernel was started with that keeps the driver of the cards away."""
        names = ("nvidia",) if self.maker == "NVIDIA" else _MODULES.get(self.maker, ())
        return listed(
            [
                one
                for one in self.signs.options
                if (one == _NO_MODESETTING and self.maker != "NVIDIA")
                or any(name in one for name in names)
            ]
        )

    @property
    def is_not_installed(self) -> bool:
        """Whether the running kernel has no module for the cards; False if that is not known."""
        installed = self.signs.installed
        wanted = {self.module_to_load, "xe" if self.maker == "Intel" else ""}
        return installed is not None and wanted.isdisjoint(installed)

    @property
    def release(self) -> str:
        return self.signs.release

    @property
    def module_to_load(self) -> str:
        of_intel = "xe" if self.needs_xe else "i915"
        return {"NVIDIA": nvidia.KERNEL_DRIVER, "AMD": "amdgpu"}.get(self.maker, of_intel)

    @property
    def needs_xe(self) -> bool:
        """Whether a card is of a generation that only Intel's newer kernel driver supports."""
        chips = (gpu_chip(card.maker, card.pci_device_id) for card in self.cards)
        return any(chip is not None and chip.generation.startswith(_WITH_XE) for chip in chips)

    @property
    def old_kernel(self) -> str:
        """What a build says of a kernel that is too old for a card; empty if none is."""
        old = BuildVerdict.OLD_KERNEL
        judged = (one for card, one in self.facts.judged_cards if card in self.cards)
        return next((one.sentence for one in judged if one.verdict is old), "")

    @property
    def because(self) -> str:
        """PyTorch's reason, as it reads after a colon."""
        return continued(self.reason)

    @property
    def need(self) -> str:
        """What the maker's software needs here, as a sentence."""
        needs = NEEDS.get((self.maker, self.facts.system))
        return f"{PLATFORMS[self.maker]} {needs}." if needs else ""

    @property
    def maker_page(self) -> str:
        return MAKER_PAGES.get(self.maker, self.driver_page)

    @property
    def windows_page(self) -> str:
        return _WINDOWS_DRIVER_PAGES.get(self.maker, nvidia.DRIVER_PAGE)

    @property
    def library(self) -> str:
        return self.error.library if self.error is not None else ""

    # ── marks ────────────────────────────────────────────────────────────────────────────────

    def logged(self, words: str) -> str:
        """Return a line of the kernel's log that matches, and names no other card."""
        own = {(card.pci_bus_id or "")[-12:-2].lower() for card in self.cards}
        for line in reversed(self.signs.kernel_log):
            slots = {slot.lower() for slot in _SLOT.findall(line)}
            if re.search(words, line, re.IGNORECASE) and (not slots or slots & own):
                return line
        return ""

    def lacks_file(self, beginning: str) -> bool:
        """Return whether no such device file is there; False if that is not known."""
        return self.knows_signs and not self.signs.files_at(beginning)

    @property
    def runs_module(self) -> bool:
        """Whether NVIDIA's kernel module runs, in a container that of the PC."""
        signs = self.signs
        return self.is_held_by_nvidia or "nvidia" in signs.modules or bool(signs.nvidia_module)

    @property
    def has_two_versions(self) -> bool:
        """Whether the driver itself says that its library and kernel module do not match."""
        readings = (self.facts.reading_of(card) for card in self.cards)
        codes = [self.driver.error_code, *(card.unreadable_code for card in self.cards)]
        codes += [one.error_code for one in readings if one is not None]
        return "driver_updated" in codes

    @property
    def is_other_library(self) -> bool:
        """Whether NVML's library and the kernel module have different versions."""
        version, own = self.driver.version, self.driver.library_version
        return bool(version and own and own != version)

    @property
    def is_foreign_library(self) -> bool:
        """Whether CUDA's library has another version than the driver, and NVML's has not."""
        found = _LIBRARY_VERSION.search(self.library)
        version = self.driver.version
        return bool(found and version and found[1] != version and not self.is_other_library)

    @property
    def is_held_by_nvidia(self) -> bool:
        return any(card.kernel_driver == nvidia.KERNEL_DRIVER for card in self.cards)

    def files(self) -> list[DeviceFile]:
        signs = self.signs
        if self.maker == "NVIDIA":
            return signs.files_at("/dev/nvidia")
        slots = {card.pci_bus_id for card in self.cards}
        nodes = [one for one in signs.files_at("/dev/dri/") if not one.slot or one.slot in slots]
        return [*(signs.files_at("/dev/kfd") if self.maker == "AMD" else ()), *nodes]

    # ── CUDA's errors ────────────────────────────────────────────────────────────────────────

    @property
    def start_meaning(self) -> str:
        """What the error means with which CUDA does not start; empty if that is not known."""
        return self._meaning_of(self.code)

    @property
    def mismatch(self) -> str:
        return self._meaning_of(_MISMATCH)

    def _meaning_of(self, code: int | None) -> str:
        kind = error_table().start_kind(code)
        return "" if kind is None else continued(kind.headline).rstrip(".")

    def steps_of(self, code: int | None) -> Mapping[str, Advice]:
        """Return the steps of an error with which CUDA does not start."""
        kind = error_table().start_kind(code)
        if kind is None:
            return {}
        return {**GIVE_CARD, **kind.places} if kind.gives_card else kind.places

    # ── the finding ──────────────────────────────────────────────────────────────────────────

    @property
    def places(self) -> tuple[str, ...]:
        """Where this is, most special first: keys of steps."""
        wsl, box = self.facts.inventory.is_wsl, self.signs.sandbox
        if box in ("flatpak", "snap"):
            return (box, "any")
        if box:
            return (*(("WSL container",) if wsl else ()), box, "container", "any")
        return ("WSL" if wsl else self.facts.system, "any")

    def step(self, steps: Mapping[str, Advice] | int) -> Advice:
        """Return the step for this place.

        Args:
            steps: by place, or the number of CUDA's error that has them: 0 is this case's.
        """
        if isinstance(steps, int):
            steps = self.steps_of(steps or self.code)
        found = next((steps[place] for place in self.places if place in steps), Advice(""))
        return Advice(self.filled(found.words), self.filled(found.command))

    def filled(self, text: str) -> str:
        """Return a text with the names in braces replaced by what they stand for."""
        return re.sub(r"\{(\w+)\}", lambda found: str(getattr(self, found[1])), text)


_SELECTOR = "ONEAPI_DEVICE_SELECTOR"
# "GPU isolation techniques" of HIP, which also reads CUDA's; Level Zero's specification, "Affinity
# Mask"; oneAPI DPC++, "Environment Variables".
HIDING_VARIABLES = {
    "rocm": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "xpu": ("ZE_AFFINITY_MASK", _SELECTOR),
}


def hiding_variable(kind: str, variables: Mapping[str, str], count: int) -> str:
    """Return a variable that surely leaves no card to a kind of build; empty if none does.

    Args:
        kind: the kind of PyTorch's build.
        variables: the environment.
        count: the number of cards that such a build is for.
    """
    for name in HIDING_VARIABLES.get(kind, ()):
        hides = hides_level_zero if name == _SELECTOR else hides_all
        if name in variables and hides(variables[name], count):
            return name
    return ""


def hides_all(value: str, count: int) -> bool:
    """Return whether a list of cards to show surely names none of them.

    It is empty, or begins with a number that is not below their count, after which CUDA, HIP and
    Level Zero take no further entry. A name that is no number may be one of them.
    """
    entries = [entry.strip().partition(".")[0] for entry in value.split(",")]
    if not any(entries):
        return True
    if not entries[0].lstrip("-").isdecimal():
        return False
    return not 0 <= int(entries[0]) < max(count, 1)


def hides_level_zero(value: str, _count: int) -> bool:
    """Return whether a choice of SYCL's devices leaves out Level Zero, PyTorch's way to Intel's."""
    chosen = {term.partition(":")[0].strip() for term in value.split(";")} - {""}
    wanted = {name for name in chosen if not name.startswith("!")}
    return bool(wanted) and wanted.isdisjoint({"level_zero", "*"})


_LONGEST_TEXT = 200


def evidence_of(case: UnusedCards) -> str:
    """Return what a finding about these cards rests on; the same for every cause."""
    own = "NVRM|nvidia" if case.maker == "NVIDIA" else "amdgpu|kfd|i915|xe"
    line = case.logged(own)
    parts = (
        _engine_words(case),
        *_driver_words(case),
        *map(_card_words, case.cards),
        _file_words(case),
        f"Linux was started with {case.options}" if case.options else "",
        f"in {case.sandbox}" if case.is_boxed else "",
        "WSL 2, with the driver of Windows" if case.facts.inventory.is_wsl else "",
        *_variable_words(case),
        f"the kernel's log: “{line}”" if line else "",
    )
    return "; ".join(part for part in parts if part) or "the system shows no such card"


def _driver_words(case: UnusedCards) -> tuple[str, ...]:
    """Return NVIDIA's own error, and the versions of the driver's two halves."""
    driver = case.driver
    if case.maker != "NVIDIA":
        return ()
    kind = {True: " (open)", False: " (proprietary)", None: ""}[case.signs.is_open_module]
    version = driver.version or case.signs.nvidia_version
    half = f"kernel module {version}{kind}" if case.is_on_linux else f"driver {version}"
    library = f"library {driver.library_version}" if driver.library_version else ""
    return driver.evidence, half if version else "", library


def _file_words(case: UnusedCards) -> str:
    if not case.knows_signs:
        return ""
    return listed([one.words for one in case.files()]) or _missing_words(case)


def _variable_words(case: UnusedCards) -> list[str]:
    variables = case.facts.inventory.variables
    names = (*HIDING_VARIABLES.get(case.kind, ()), "HSA_OVERRIDE_GFX_VERSION")
    if case.kind == CUDA_BUILD:
        return []
    return [f"{name} is “{variables[name]}”" for name in names if name in variables]


def _engine_words(case: UnusedCards) -> str:
    engine = case.facts.engine
    if engine is None or not case.reason:
        return ""
    words = f"torch {engine.torch_version}, built for {engine.built_for}"
    if case.error is not None:
        text, library = case.error.text[:_LONGEST_TEXT], case.error.library
        words += f"; PyTorch says “{text}”" if text else ""
        words += f"; it loaded {library}" if library else ""
    return words


def _card_words(card: Device) -> str:
    number = f"{card.pci_device_id:04x}" if card.pci_device_id is not None else "unknown"
    held = f", driven by {card.kernel_driver}" if card.kernel_driver else ""
    revision = ", revision ff" if card.is_off_bus else ""
    where = f"{card.short_name} at {card.pci_bus_id or 'an unknown slot'}, device id {number}"
    return f"{where}{held}{revision}"


def _missing_words(case: UnusedCards) -> str:
    if case.facts.inventory.is_wsl:
        return "" if case.signs.files_at("/dev/dxg") else "no /dev/dxg"
    names = {"NVIDIA": "/dev/nvidia*", "AMD": "/dev/kfd and /dev/dri/renderD*"}
    return f"no {names.get(case.maker, '/dev/dri/renderD*')}"
