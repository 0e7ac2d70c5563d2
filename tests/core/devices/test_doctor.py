"""The situations of doctor_situations.txt as what a PC would tell the doctor.

It is made from the sources alone: which driver serves which card, which driver
starts which CUDA, which build has which code. Nothing here asks the program.
"""

from pathlib import Path
from typing import NamedTuple

from gpu_studio.core.devices.devices import Device, Driver, Inventory
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.devices.findings import find
from gpu_studio.core.messages.engine_messages import EngineDescribed

CPU = Device(kind="cpu", name="AMD Ryzen 7 5700G")


class Kind(NamedTuple):
    """A card as it is sold: capability, device id, architecture, first driver branch without it."""

    name: str
    capability: str
    device_id: int
    architecture: str
    first_driver_without: int | None = None


KINDS = {
    kind.name: kind
    for kind in (
        Kind("GT 710", "3.5", 0x128B, "Kepler", 495),
        Kind("Tesla K80", "3.7", 0x102D, "Kepler", 495),
        Kind("GTX 750 Ti", "5.0", 0x1380, "Maxwell", 590),
        Kind("GT 1030", "6.1", 0x1D01, "Pascal", 590),
        Kind("GTX 1060", "6.1", 0x1C03, "Pascal", 590),
        Kind("TITAN V", "7.0", 0x1D81, "Volta", 590),
        Kind("GTX 1650", "7.5", 0x1F82, "Turing"),
        Kind("RTX 2080 Ti", "7.5", 0x1E07, "Turing"),
        Kind("A100-SXM4-40GB", "8.0", 0x20B0, "Ampere"),
        Kind("RTX 3060", "8.6", 0x2504, "Ampere"),
        Kind("RTX 4090", "8.9", 0x2684, "Ada"),
        Kind("H200", "9.0", 0x2335, "Hopper"),
        Kind("RTX 5090", "12.0", 0x2B85, "Blackwell"),
    )
}

MAXWELL_TO_HOPPER = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
VOLTA_TO_BLACKWELL = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
TURING_TO_BLACKWELL = VOLTA_TO_BLACKWELL[1:]
# What torch.cuda.get_arch_list() says; "+PTX" of the build scripts is compute_120 there.
ARCH_LISTS = {
    "2.7.1+cu118": ("sm_37", *MAXWELL_TO_HOPPER),
    "2.5.1+cu121": MAXWELL_TO_HOPPER,
    "2.6.0+cu124": MAXWELL_TO_HOPPER,
    "2.13.0+cu126": MAXWELL_TO_HOPPER,
    "2.7.1+cu128": (*TURING_TO_BLACKWELL, "compute_120"),
    "2.10.0+cu128": VOLTA_TO_BLACKWELL,
    "2.11.0+cu128": TURING_TO_BLACKWELL,
    "2.13.0+cu129": TURING_TO_BLACKWELL,
    "2.13.0+cu130": TURING_TO_BLACKWELL,
    "2.13.0+cu132": TURING_TO_BLACKWELL,
    "2.14.1+cu126": MAXWELL_TO_HOPPER,
    "2.14.1+cu130": TURING_TO_BLACKWELL,
    "2.15.0+cu130": TURING_TO_BLACKWELL,
    "2.15.0+cu132": TURING_TO_BLACKWELL,
    "2.15.0+cu134": TURING_TO_BLACKWELL,
}
# CUDA minor version compatibility: the oldest driver of each generation.
FLOORS = {
    ("11", "Linux"): (450, 80, 2), ("11", "Windows"): (452, 39),
    ("12", "Linux"): (525, 60, 13), ("12", "Windows"): (528, 33),
    ("13", "Linux"): (580,), ("13", "Windows"): (580,),
}  # fmt: skip


class Situation(NamedTuple):
    """One PC: what is in it, and what has to be found, worst first, as the source says."""

    kinds: tuple[Kind, ...]
    driver: str
    wheel: str
    system: str
    codes: tuple[str, ...]
    words: str
    action: str
    source: str
    is_wsl: bool = False

    @property
    def title(self) -> str:
        names = " and ".join(kind.name for kind in self.kinds)
        system = "WSL" if self.is_wsl else self.system
        return f"{names}, {self.driver}, {self.wheel}, {system}"

    @property
    def driver_system(self) -> str:
        return "Windows" if self.is_wsl else self.system


def situations() -> list[Situation]:
    text = Path(__file__).with_name("doctor_situations.txt").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if not line.startswith("#")]
    return [_situation([cell.strip() for cell in row]) for row in rows]


def _situation(cells: list[str]) -> Situation:
    names, driver, wheel, system, codes, words, action, source = cells
    return Situation(
        tuple(KINDS[name] for name in names.split(" + ")),
        driver,
        wheel,
        {"L": "Linux", "W": "Windows", "S": "Linux"}[system],
        tuple(codes.split()),
        words,
        action,
        source,
        is_wsl=system == "S",
    )


def action_of(command: str) -> str:
    """The next step of a finding as the table names it."""
    if " pip install " in command:
        return command.partition("+")[2].split()[0]
    pages = {"https://www.nvidia.com/drivers": "driver", "": "-"}
    pages["https://www.nvidia.com/en-us/drivers/unix/"] = "unix"
    pages["https://pytorch.org/get-started/previous-versions/"] = "older"
    return pages[command]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def is_served_by(kind: Kind, driver: str) -> bool:
    without = kind.first_driver_without
    return without is None or numbers(driver)[0] < without


def card_of(kind: Kind, place: int, driver: str) -> Device:
    """A card as NVML tells it, or as the bus does if its driver has dropped it."""
    bus = f"00000000:{place + 1:02X}:00.0"
    name = f"NVIDIA {'GeForce ' if kind.name.startswith(('GT', 'RTX')) else ''}{kind.name}"
    if not is_served_by(kind, driver):
        return Device(
            kind="cuda", name=name, pci_bus_id=bus, pci_device_id=kind.device_id,
            unreadable="The NVIDIA driver does not serve this card.", unreadable_code="not_served",
        )  # fmt: skip
    return Device(
        kind="cuda", name=name, uuid=f"GPU-{place}{place}{place}{place}", driver_index=place,
        compute_capability=kind.capability, architecture=kind.architecture, pci_bus_id=bus,
        pci_device_id=kind.device_id,
    )  # fmt: skip


def inventory_of(situation: Situation) -> Inventory:
    driver = situation.driver
    cards = [card_of(kind, place, driver) for place, kind in enumerate(situation.kinds)]
    result = Driver(version=driver)
    if not any(is_served_by(kind, driver) for kind in situation.kinds):
        # The kernel module finds no card and is not loaded; the library tells its version.
        result = Driver(
            library_version=driver, error="The NVIDIA driver is installed, but it is not running.",
            error_code="not_running", evidence="NVML error 9",
        )  # fmt: skip
    return Inventory(devices=(CPU, *cards), driver=result, is_wsl=situation.is_wsl)


def engine_of(situation: Situation) -> EngineDescribed:
    """PyTorch as its engine describes it: its list is known only if CUDA starts."""
    version = situation.wheel
    tag = version.partition("+")[2]
    if not tag.startswith("cu"):
        return EngineDescribed(pid=1, torch_version=version)
    floor = FLOORS[tag[2:4], situation.driver_system]
    starts = numbers(situation.driver) >= floor and any(
        is_served_by(kind, situation.driver) for kind in situation.kinds
    )
    return EngineDescribed(
        pid=1,
        torch_version=version,
        cuda_build=f"{tag[2:4]}.{tag[4:]}",
        cuda_available=starts,
        arch_list=ARCH_LISTS[version] if starts else (),
    )


SITUATIONS = situations()


def findings_of(situation: Situation) -> list[Finding]:
    return find(
        inventory_of(situation), engine_of(situation), system=situation.system, machine="x86_64"
    )


def test_the_doctor_says_what_the_sources_say() -> None:
    other = {}
    for one in SITUATIONS:
        listed = [found for found in findings_of(one) if found.code != "mixed_order"]
        codes = tuple(finding.code for finding in listed)
        first = listed[0]
        if (codes, action_of(first.command)) != (one.codes, one.action) or (
            one.words not in first.sentence
        ):
            other[one.title] = (codes, first.sentence, first.command, one.source)
    assert not other


def test_a_card_without_code_is_reported_in_one_line() -> None:
    """The reasons are behind Details: a banner of three lines pushed the page down."""
    first = {
        one.title: findings_of(one)[0] for one in SITUATIONS if one.codes[0] == "no_code_for_card"
    }
    assert len(first) > 15
    assert not [title for title, one in first.items() if len(one.sentence) > 140 or not one.detail]
