"""Findings about PyTorch: does its build fit the cards, and does CUDA start?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import nvidia
from gpu_studio.core.devices.access import capability_of, label_of, no_code_words
from gpu_studio.core.devices.devices import PROHIBITED
from gpu_studio.core.devices.finding import (
    OLDER_TORCH_PAGE,
    Finding,
    continued,
    newer_driver,
    reload_cuda,
)
from gpu_studio.core.devices.pc_facts import recommended_build
from gpu_studio.core.texts import listed
from gpu_studio.core.wheel_table import CPU_TAG, download_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts


_NO_CUDA_BUILDS = "PyTorch has no CUDA build for this kind of PC"


def engine_missing(facts: PcFacts) -> Iterator[Finding]:
    """The program installs PyTorch itself, and there is none, or none that this Python can load."""
    if not facts.absence:
        return
    choice = recommended_build(facts.inventory)
    yield Finding(
        code="engine_missing",
        sentence=facts.absence,
        evidence=f"{choice.sentence} It downloads {download_size(choice.tag)}.",
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
                evidence=f"{why.rstrip('.')}; {evidence}",
                command=nvidia.driver_page(facts),
            )
        else:
            reason = "no current build helps" if facts.has_cuda_builds else _NO_CUDA_BUILDS
            older = _older_builds(facts, cards[0])
            yield Finding(
                code="no_code_for_card",
                sentence=f"PyTorch cannot use your {names}: {reason}.{older}",
                evidence=f"{why.rstrip('.')}; {evidence}",
                command=_page_of_older_builds(facts, cards[0]),
            )
        return
    is_or_are = "is" if len(cards) == 1 else "are"
    other = f" The {choice.tag} build can use it." if choice else ""
    yield Finding(
        code="build_without_cuda",
        sentence=f"Your {names} {is_or_are} fine, but this PyTorch is {engine.build_words}.{other}",
        evidence=evidence,
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
            why = f"{continued(choice.sentence).rstrip('.')}; "
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
            evidence=f"{why}torch {engine.torch_version} has code for: {arch_list}; the card is "
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


def cuda_init_failed(facts: PcFacts) -> Iterator[Finding]:
    """CUDA does not start although driver and build match, or it failed on one card."""
    engine = facts.cuda_build
    if engine is None:
        return
    action = reload_cuda(facts)
    started = facts.probe is None or facts.probe.error is None
    # Cards that were left asleep are not a failure.
    if facts.nvidia_cards and not ((engine.cuda_available or engine.cards_asleep) and started):
        names = listed([card.short_name for card in facts.nvidia_cards])
        reason = engine.cuda_reason or (facts.probe.error if facts.probe else None)
        yield Finding(
            code="cuda_init_failed",
            sentence=f"PyTorch cannot use your {names} now. {reason or 'PyTorch gives no reason.'}",
            evidence=f"torch {engine.torch_version}, CUDA {engine.cuda_build}; driver "
            f"{facts.driver.version or 'unknown'}; torch.cuda.is_available() is "
            f"{engine.cuda_available}" + ("" if started else "; a new process could not start it"),
            command=action,
        )
        return
    for card in facts.cards:
        probed = facts.probed(card)
        if probed is None or probed.outcome not in ("failed", "died", "out_of_memory"):
            continue
        what = {
            "died": "the driver ended the process that ran it",
            "out_of_memory": "there is not enough free memory on it for even one small kernel",
        }.get(probed.outcome, "it ended with an error")
        yield Finding(
            code="cuda_init_failed",
            sentence=f"A small kernel does not run on your {card.short_name}: {what}.",
            evidence=probed.message or "No error message.",
            command=action if probed.outcome != "out_of_memory" else nvidia.TOOL,
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
                evidence=f"CUDA_VISIBLE_DEVICES is “{engine.visible_devices}”; the card is "
                f"{card.identity}",
                command="set CUDA_VISIBLE_DEVICES="
                if facts.system == "Windows"
                else "unset CUDA_VISIBLE_DEVICES",
                device_uuid=card.identity,
            )


def tables_differ(facts: PcFacts) -> Iterator[Finding]:
    """PyTorch's own table of builds contradicts this program's."""
    differences = facts.table_differences()
    if differences:
        yield Finding(
            code="tables_differ",
            sentence="GPU Studio's table of PyTorch builds and PyTorch's own table disagree: "
            f"{listed(differences)}. The test with a real kernel decides.",
            evidence="resources/wheels.json and torch.cuda.PYTORCH_RELEASES_CODE_CC",
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
            evidence=f"torch {engine.torch_version}{code}; driver "
            f"{facts.driver.version or 'unknown'}; it is {card.address}",
            device_uuid=card.identity,
        )


def _is_lost(facts: PcFacts, card: Device) -> bool:
    reading = facts.reading_of(card)
    return reading is not None and reading.error_code in ("lost", "silent")
