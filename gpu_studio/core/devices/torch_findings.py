"""Findings about PyTorch: does its build fit the cards, does CUDA start, which build would do?"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.access import (
    capability_of,
    label_of,
    no_code_words,
    obstacle_of,
    probe_of,
    uncounted_cards,
)
from gpu_studio.core.devices.devices import PROHIBITED
from gpu_studio.core.devices.finding import (
    OLDER_TORCH_PAGE,
    Finding,
    continued,
    is_tested,
    newer_driver,
    restart,
    untested_sentence,
)
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.devices.maker_cards import chip_of_maker
from gpu_studio.core.devices.pc_facts import recommended_build
from gpu_studio.core.devices.unused_cards import MAKER_PAGES, NEEDS
from gpu_studio.core.maker_builds import IN_PYTORCHS_OWN, BuildVerdict
from gpu_studio.core.texts import listed
from gpu_studio.core.wheel_table import CPU_TAG, download_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts
    from gpu_studio.core.maker_builds import JudgedCard

_NO_CUDA_BUILDS = "PyTorch has no CUDA build for this kind of PC"


def engine_missing(facts: PcFacts) -> Iterator[Finding]:
    """The program installs PyTorch itself, and there is none, or none that this Python can load."""
    if not facts.absence:
        return
    choice = recommended_build(facts.inventory)
    yield Finding(
        code="engine_missing",
        sentence=facts.absence,
        detail=f"{choice.sentence} It downloads {download_size(choice.tag)}.",
        command=choice.install_command,
        build_tag=choice.tag,
    )


def build_without_cuda(facts: PcFacts) -> Iterator[Finding]:
    """There are NVIDIA cards, but the installed PyTorch is for the CPU or for another maker."""
    engine, cards = facts.engine, [*facts.cards, *facts.sleeping]
    if engine is None or engine.cuda_build is not None or not cards:
        return
    choice = facts.choice(cards)
    # A card that PyTorch no longer supports beside one that it supports is not what this is about.
    cards = [card for card in cards if facts.any_build(card)] or cards
    names = listed([card.short_name for card in cards])
    evidence = f"torch {engine.torch_version}; driver {facts.driver.version or 'unknown'}"
    if choice is not None and choice.tag == CPU_TAG:
        # No build would support the card, so switching builds does not help; the choice says why.
        why = continued(choice.sentence)
        build = facts.any_build(cards[0])
        if build is not None:
            yield Finding(
                code="driver_too_old",
                sentence=f"PyTorch cannot use your {names} yet: it needs driver "
                f"{facts.floor_of(build)} or newer, and yours is {facts.driver.version}. "
                f"Update {newer_driver(facts, cards)}.",
                detail=f"{why.rstrip('.')}; {evidence}",
                command=nvidia.driver_page(facts),
            )
        else:
            reason = "no current build helps" if facts.has_cuda_builds else _NO_CUDA_BUILDS
            older = _older_builds(facts, cards[0])
            yield Finding(
                code="no_code_for_card",
                sentence=f"PyTorch cannot use your {names}: {reason}.{older}",
                detail=f"{why.rstrip('.')}; {evidence}",
                command=_page_of_older_builds(facts, cards[0]),
            )
        return
    is_or_are = "is" if len(cards) == 1 else "are"
    other = f" The {choice.tag} build can use it." if choice else ""
    yield Finding(
        code="build_without_cuda",
        sentence=f"Your {names} {is_or_are} fine, but this PyTorch is {engine.build_words}.{other}",
        detail=evidence,
        command=choice.install_command if choice else "",
        build_tag=choice.tag if choice else "",
    )


def no_code_for_card(facts: PcFacts) -> Iterator[Finding]:
    """The installed PyTorch has no code for a card: available, but "no kernel image"."""
    engine = facts.cuda_build
    for card in (*facts.cards, *facts.sleeping):
        if engine is None or facts.has_code(card) is not False:
            continue
        choice = facts.choice([card])
        other = choice if choice and choice.tag != CPU_TAG else None
        is_jetson = capability_of(card) in nvidia.JETSON
        why = ""  # for Details: the sentence is one line
        sentence = no_code_words(card)
        lost = facts.served_less(other.tag) if other else []
        build = facts.any_build(card)
        if is_jetson:
            sentence += ": NVIDIA itself publishes PyTorch for each Jetson (not tested by us)."
        elif other and lost:
            sentence += f": install the {other.tag} build in a separate environment."
            why = f"the {other.tag} build has none for your {listed(lost)}; "
        elif other:
            sentence += f": install the {other.tag} build."
        elif build and choice:
            newer = newer_driver(facts, [card], facts.floor_of(build))
            sentence += f": update {newer}, then install the {build.tag} build."
            why = f"{continued(choice.sentence).rstrip('.')}; "
        elif choice and facts.has_cuda_builds:
            sentence += f", and no other build helps.{_older_builds(facts, card)}"
            why = f"{CAN_BE_MEASURED} {choice.sentence.rstrip('.')}; "
        else:
            sentence += "."
        command = _page_of_older_builds(facts, card)
        if build and choice:
            command = nvidia.driver_page(facts)
        if is_jetson:
            command = nvidia.JETSON_PAGE
        elif other:
            command = other.install_command
        arch_list = " ".join(engine.arch_list) or "unknown; the published build's list is used"
        probed = facts.probed(card)
        tried = f"; a real kernel failed: {probed.message}" if probed and probed.message else ""
        yield Finding(
            code="no_code_for_card",
            sentence=sentence,
            detail=f"{why}torch {engine.torch_version} has code for: {arch_list}; the card is "
            f"{label_of(card)}; driver {facts.driver.version}{tried}",
            command=command,
            build_tag=other.tag if other and not lost and not is_jetson else "",
            device_uuid=card.identity,
        )


def _older_builds(facts: PcFacts, card: Device) -> str:
    """Return the older PyTorch with code for a card that the current builds have dropped."""
    if facts.any_build(card) or not facts.knows_older_builds:
        return ""
    last = facts.last_build(card)
    if last is None:
        return " No PyTorch since 2.0 has code for it."
    return f" The last PyTorch with code for it is {last.torch[1]}, in the {last.tag} build."


def _page_of_older_builds(facts: PcFacts, card: Device) -> str:
    """Return where older versions of PyTorch are, if only they have code for a card."""
    is_known = facts.knows_older_builds and facts.last_build(card) is not None
    return OLDER_TORCH_PAGE if is_known and not facts.any_build(card) else ""


def kernel_failed(facts: PcFacts) -> Iterator[Finding]:
    """A small kernel does not run on a card, although CUDA starts."""
    for card in facts.cards:
        probed = facts.probed(card)
        if probed is None or probed.outcome not in ("failed", "died", "out_of_memory"):
            continue
        what = {
            "died": "the driver ended the process that ran it",
            "out_of_memory": "there is not enough free memory on it for even one small kernel",
        }.get(probed.outcome, "it ended with an error")
        is_full = probed.outcome == "out_of_memory"
        yield Finding(
            code="card_not_usable",
            sentence=f"A small kernel does not run on your {card.short_name}: {what}.",
            detail=probed.message or "No error message.",
            command=nvidia.TOOL if is_full else restart(facts),
            device_uuid=card.identity,
        )


def hidden_by_environment(facts: PcFacts) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides a card."""
    engine = facts.cuda_build
    if engine is None or engine.visible_devices is None:
        return
    for card in facts.cards:
        if card.torch_index is None:
            yield Finding(
                code="hidden_by_environment",
                sentence=f"Your {card.short_name} is hidden from PyTorch by the variable "
                "CUDA_VISIBLE_DEVICES.",
                detail=f"CUDA_VISIBLE_DEVICES is “{engine.visible_devices}”; the card is "
                f"{card.identity}",
                command="set CUDA_VISIBLE_DEVICES="
                if facts.system == "Windows"
                else "unset CUDA_VISIBLE_DEVICES",
                device_uuid=card.identity,
            )


def ok(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch can use a card: it sees it, has code for it, and a tested kernel ran."""
    engine = facts.cuda_build
    if engine is None or not (engine.cuda_available or engine.cards_asleep):
        return
    for card in (*facts.cards, *facts.sleeping):
        probed, has_code = facts.probed(card), facts.has_code(card)
        if card.torch_index is None or has_code is False or _is_lost(facts, card):
            continue
        if has_code is None and card in facts.sleeping:
            continue  # its capability is unknown
        if probed is None and card.compute_mode == PROHIBITED:
            continue
        if probed is not None and probed.outcome != "ran":
            continue
        if probed is None and engine.cards_asleep:
            continue  # PyTorch was not asked
        capability = f" ({card.compute_capability})" if card.compute_capability else ""
        ran = "; a real kernel ran on it" if probed else ""
        code = f" has code for it{capability}{ran}"
        if facts.lists_code(card) is False:
            code = f" lists no code for it{capability}, but a real kernel ran on it"
        elif facts.lists_code(card) is None:
            code = f" does not list its code{capability}{ran}"
        yield Finding(
            code="ok",
            sentence=f"PyTorch can use your {card.short_name}.",
            detail=f"torch {engine.torch_version}{code}; driver "
            f"{facts.driver.version or 'unknown'}; it is {card.address}",
            device_uuid=card.identity,
        )


def _is_lost(facts: PcFacts, card: Device) -> bool:
    reading = facts.reading_of(card)
    return reading is not None and reading.error_code in ("lost", "silent")


CAN_BE_MEASURED = "GPU Studio can measure it without PyTorch (not tested by us)."
_WITHOUT_PYTORCH = "gpu-studio bench matmul --without-pytorch"
_VENDOR_IDS = {"AMD": 0x1002, "Intel": 0x8086}
_ID_PAGE = "https://pci-ids.ucw.cz/read/PC/{vendor:04x}/{device:04x}"
_OWN_BUILD = "python -m pip install torch --index-url https://download.pytorch.org/whl/rocm7.2"


def build_for_card(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch has a build for an AMD or Intel card, and no other card of this PC is in use."""
    yield from _offers("build_for_card", "PyTorch can use", facts, are_beside=False)


def other_build_for_card(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch has a build for one of AMD's or Intel's beside a card of more use.

    That is a card of NVIDIA's that works, or, beside the graphics of a processor, any card that
    PyTorch is for: that one fails, and why comes first.
    """
    yield from _offers("other_build_for_card", "Another PyTorch can use", facts, are_beside=True)


def _offers(code: str, who: str, facts: PcFacts, *, are_beside: bool) -> Iterator[Finding]:
    has_card = any(facts.any_build(card) for card in facts.nvidia_cards) or any(
        judged.tag and not judged.card.is_integrated for _, judged in facts.judged_cards
    )
    for card, judged in facts.judged_cards:
        is_beside = bool(facts.cards) or (judged.card.is_integrated and has_card)
        if judged.verdict is not BuildVerdict.BUILD or is_beside is not are_beside:
            continue
        if card.is_apart or _is_used(card, judged, facts):
            continue
        yield Finding(
            code=code,
            sentence=f"{who} your {judged.card.name}: {_offer(judged)}.",
            detail=_evidence(card, judged, facts),
            command=f"gpu-studio engine install {judged.tag}",
            device_uuid=_row_of(card, facts),
            build_tag=judged.tag,
        )


def no_build_for_card(facts: PcFacts) -> Iterator[Finding]:
    """No build of PyTorch is for a card of AMD's or Intel's here: why, and what is left.

    The graphics of a processor beside a usable card are what most laptops have: nothing to say.
    """
    for card, judged in facts.judged_cards:
        is_beside = judged.card.is_integrated and bool(facts.cards or _usable(facts))
        if judged.verdict is BuildVerdict.BUILD or is_beside or card.is_apart:
            continue
        if _is_used(card, judged, facts):
            continue
        sentence, command = _next_step(card, judged, facts)
        yield Finding(
            code="no_build_for_card",
            sentence=" ".join(filter(None, (f"{judged.sentence}.", sentence, CAN_BE_MEASURED))),
            detail=_evidence(card, judged, facts),
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
    if engine is None or engine.build_kind != card.build_kind or not judged.may_have_build:
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
    needs = f"; {NEEDS[card.maker, facts.system]}" if judged.tag else ""
    return (
        f"{known}{number}; torch {build.version} from {host}, for {facts.system} and Python "
        f"{major}.{minor}{needs}"
    )


def _next_step(card: Device, judged: JudgedCard, facts: PcFacts) -> tuple[str, str]:
    """Return what is left to do with a card without a build, and a command or an address."""
    page = MAKER_PAGES[card.maker]
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
    if judged.card.chip in IN_PYTORCHS_OWN and facts.system == "Linux":
        return "PyTorch's own ROCm builds list it, but AMD no longer tests it.", _OWN_BUILD
    return "", _WITHOUT_PYTORCH


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
        detail=f"PyTorch lists {', '.join(f'{at} {name}' for at, name in names.items())}",
        command=assign.format(variable, engine.first_card),
    )


def not_tested(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch can use the card, but nobody has run this program on one of its maker."""
    for maker in dict.fromkeys(card.maker for card in _usable(facts)):
        if not is_tested(maker):
            yield Finding(
                code="not_tested",
                sentence=untested_sentence(maker),
                detail="If a number looks wrong, compare it with the maker's own tool.",
            )


def ok_by_maker(facts: PcFacts) -> Iterator[Finding]:
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
            detail=f"torch {engine.torch_version}, built for {engine.built_for}{chip}{ran}; it "
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
