"""Findings about AMD's and Intel's cards: which build of PyTorch is for them, and how it does."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpu_studio.core.devices.access import obstacle_of, probe_of, uncounted_cards
from gpu_studio.core.devices.finding import Finding, is_tested, untested_sentence
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.devices.maker_cards import chip_of_maker
from gpu_studio.core.maker_builds import BuildVerdict
from gpu_studio.core.wheel_table import download_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts
    from gpu_studio.core.maker_builds import JudgedCard


_PAGES = {
    "AMD": "https://rocm.docs.amd.com/en/latest/compatibility/compatibility-matrix.html",
    "Intel": "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html",
}
# "Prerequisites" of TheRock's RELEASES.md, and of PyTorch's page for Intel.
_NEEDS = {
    ("AMD", "Linux"): "needs the driver amdgpu, and your user in the groups render and video",
    ("AMD", "Windows"): "needs AMD's newest Adrenalin driver",
    ("Intel", "Linux"): "needs Intel's Level Zero (the package libze-intel-gpu1)",
    ("Intel", "Windows"): "needs Intel's newest graphics driver",
}
# Linux has no Vulkan driver for these, or an unfinished one.
_WITHOUT_VULKAN = {"Gen 6", "Gen 7", "Gen 7.5", "Gen 8"}
_VENDOR_IDS = {"AMD": 0x1002, "Intel": 0x8086}
_ID_PAGE = "https://pci-ids.ucw.cz/read/PC/{vendor:04x}/{device:04x}"
# PYTORCH_ROCM_ARCH of PyTorch's .ci/docker/manywheel/build.sh, for ROCm 7: AMD's own builds leave
# these two out.
_IN_PYTORCHS_OWN = {"gfx900", "gfx906"}
_OWN_BUILD = "python -m pip install torch --index-url https://download.pytorch.org/whl/rocm7.2"


def build_for_card(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch has a build for an AMD or Intel card, and no other card of this PC is in use."""
    if not facts.cards:
        yield from _offers("build_for_card", "PyTorch can use", facts)


def other_build_for_card(facts: PcFacts) -> Iterator[Finding]:
    """Beside NVIDIA's cards, PyTorch has a build for one of AMD's or Intel's."""
    if facts.cards:
        yield from _offers("other_build_for_card", "Another PyTorch can use", facts)


def _offers(code: str, who: str, facts: PcFacts) -> Iterator[Finding]:
    for card, judged in facts.judged_cards:
        if judged.verdict is not BuildVerdict.BUILD or _is_used(card, judged, facts):
            continue
        yield Finding(
            code=code,
            sentence=f"{who} your {judged.card.name}: {_offer(judged)}.",
            evidence=_evidence(card, judged, facts),
            command=f"gpu-studio engine install {judged.tag}",
            device_uuid=_row_of(card, facts),
            build_tag=judged.tag,
        )


def no_build_for_card(facts: PcFacts) -> Iterator[Finding]:
    """No build of PyTorch is for a card of AMD's or Intel's here: why, and what is left.

    The graphics of a processor beside a usable card are what most laptops have: nothing to say.
    """
    for card, judged in facts.judged_cards:
        is_beside = judged.card.is_integrated and bool(facts.cards)
        if judged.verdict is BuildVerdict.BUILD or is_beside or _is_used(card, judged, facts):
            continue
        sentence, command = _next_step(card, judged, facts)
        yield Finding(
            code="no_build_for_card",
            sentence=f"{judged.sentence}. {sentence}",
            evidence=_evidence(card, judged, facts),
            command=command,
            device_uuid=_row_of(card, facts),
            build_tag=judged.tag,
        )


def _row_of(card: Device, facts: PcFacts) -> str | None:
    """Return the row of the devices that shows a card; None for a card that has no row."""
    return card.identity if card in facts.inventory.cards else None


def _is_used(card: Device, judged: JudgedCard, facts: PcFacts) -> bool:
    """Return whether this PyTorch is built for a card, and uses it or says why not.

    AMD's builds have code for one chip or a few: another card may need another one.
    """
    engine = facts.engine
    if engine is None or engine.build_kind != card.build_kind:
        return False
    is_for_some = card.maker == "AMD" and bool(engine.arch_list)
    return not is_for_some or lists_gfx(engine.arch_list, judged.card.chip)


def _offer(judged: JudgedCard) -> str:
    text = f"install PyTorch {judged.tag}, a download of {download_size(judged.tag)}"
    if judged.is_tested:
        return text
    return f"{text}. {judged.card.maker} has not tested it on this chip"


def _evidence(card: Device, judged: JudgedCard, facts: PcFacts) -> str:
    """Return the chip, its number, and the build with its index, system and Python."""
    chip = chip_of_maker(card)
    unknown = judged.card.chip or "a chip that is not known"
    known = f"{chip.name}, {chip.target}, {chip.generation}" if chip else unknown
    vendor, device = _VENDOR_IDS[card.maker], card.pci_device_id
    number = f", PCI {vendor:04x}:{device:04x}" if device is not None else ""
    build = judged.build
    if build is None:
        return f"{known}{number}"
    major, minor = facts.python
    host = urlsplit(build.index_url).hostname
    needs = f"; {_NEEDS[card.maker, facts.system]}" if judged.tag else ""
    return (
        f"{known}{number}; torch {build.version} from {host}, for {facts.system} and Python "
        f"{major}.{minor}{needs}"
    )


def _next_step(card: Device, judged: JudgedCard, facts: PcFacts) -> tuple[str, str]:
    """Return what is left to do with a card without a build, and a command or an address."""
    page = _PAGES[card.maker]
    match judged.verdict:
        case BuildVerdict.UNKNOWN_CHIP:
            if card.pci_device_id is None:
                return "The system does not tell the number of its chip.", page
            address = _ID_PAGE.format(vendor=_VENDOR_IDS[card.maker], device=card.pci_device_id)
            return "Look up its number, then whether the maker's list has that chip.", address
        case BuildVerdict.WRONG_RESULTS:
            return "It is not recommended.", "https://github.com/unslothai/unsloth/pull/8412"
        case BuildVerdict.OLD_KERNEL:
            return "Update the system first.", page
        case BuildVerdict.OTHER_SYSTEM | BuildVerdict.OTHER_PYTHON:
            return "Here it can only draw.", page
    if judged.card.chip in _IN_PYTORCHS_OWN and facts.system == "Linux":
        return "PyTorch's own ROCm builds list it, but AMD no longer tests it.", _OWN_BUILD
    chip = chip_of_maker(card)
    if chip is not None and chip.generation in _WITHOUT_VULKAN:
        return "Use the CPU.", page
    if facts.system == "Windows":
        return "Microsoft's torch-directml runs an older PyTorch on it (not tested by us).", page
    return "Programs that compute with Vulkan can still use it (not tested by us).", page


def integrated_first(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch's first card is the one inside the processor, and a script takes it."""
    engine = facts.engine
    if engine is None or not engine.first_card:
        return
    first, better = engine.address(0), engine.first_address
    names = {card.address: card.name for card in engine.cards}
    variable = "HIP_VISIBLE_DEVICES" if engine.build_kind == "rocm" else "ZE_AFFINITY_MASK"
    assign = "setx {} {}" if facts.system == "Windows" else "export {}={}"
    yield Finding(
        code="integrated_first",
        sentence=f"GPU Studio works on {better}, the {names.get(better, 'card')}. Your own scripts "
        f"take {first} unless they choose, which is the graphics inside the processor.",
        evidence=f"PyTorch lists {', '.join(f'{at} {name}' for at, name in names.items())}",
        command=assign.format(variable, engine.first_card),
    )


def not_tested(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch can use the card, but nobody has run this program on one of its maker."""
    for maker in dict.fromkeys(card.maker for card in _usable(facts)):
        if not is_tested(maker):
            yield Finding(
                code="not_tested",
                sentence=untested_sentence(maker),
                evidence="If a number looks wrong, compare it with the maker's own tool.",
            )


def ok(facts: PcFacts) -> Iterator[Finding]:
    """A build for the card's maker can use it."""
    engine = facts.engine
    for card in _usable(facts):
        assert engine is not None
        probed = probe_of(card, facts.probe)
        if probed is not None and probed.outcome != "ran":
            continue
        ran = "; a real kernel ran on it" if probed else ""
        chip = f" ({card.architecture})" if card.architecture else ""
        yield Finding(
            code="ok",
            sentence=f"PyTorch can use your {card.short_name}.",
            evidence=f"torch {engine.torch_version}, built for {engine.built_for}{chip}{ran}; it "
            f"is {card.address}",
            device_uuid=card.identity,
        )


def _usable(facts: PcFacts) -> list[Device]:
    """Return the cards that a build for their maker can use, as far as a list can say."""
    engine = facts.engine
    if engine is None or engine.build_kind not in ("rocm", "xpu") or engine.cards_asleep:
        return []
    known = facts.numbered
    return [
        card
        for card in (*known, *uncounted_cards(known, engine))
        if card.build_kind == engine.build_kind
        and obstacle_of(card, engine, facts.probe) is None
        and not card.is_asleep
    ]
