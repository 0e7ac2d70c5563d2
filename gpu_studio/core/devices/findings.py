"""Can PyTorch use the cards of this PC? If not, why, and what to do next?

Each finding is one small function over plain facts, or a row of `causes`. To add one, write its
function, add it to `_RULES`, and its code to `finding.KINDS`, which goes from worst to best.
Sentences are for people who are new to CUDA, the evidence is for people who are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.devices import card_findings, causes, torch_findings
from gpu_studio.core.devices.access import uncounted_cards
from gpu_studio.core.devices.causes import found_by
from gpu_studio.core.devices.devices import MAKERS
from gpu_studio.core.devices.finding import KINDS, TORCH_PAGE, Finding, worst_first
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.devices.maker_cards import maker_cards
from gpu_studio.core.devices.pc_facts import PcFacts
from gpu_studio.core.devices.unused_cards import UnusedCards
from gpu_studio.core.program_form import own_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpu_studio.core.devices.access import PcProbed
    from gpu_studio.core.devices.devices import Device, Inventory, Reading
    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.program_form import Program


# Why a card cannot be read; what else is said of it is then no finding of its own.
_SAYS_WHY = ("card_lent", "card_lost", "no_driver")
_OF_THE_PC = ("sudo ", "shutdown", "wsl ")
_WITHOUT_LIST = "it is not among the cards that PyTorch lists."
# Findings that explain why CUDA does not start at all.
_EXPLAINING = frozenset(
    {
        "driver_not_answering", "driver_library_mismatch", "card_lost", "no_driver",
        "driver_dropped_card", "driver_older_than_card", "driver_too_old", "no_code_for_card",
    }
)  # fmt: skip


def cards_of_any_maker(facts: PcFacts) -> Iterator[Finding]:
    """A card is lent to a virtual machine, or does not answer on the bus."""
    for card in (*facts.inventory.cards, *facts.inventory.unread_cards):
        if card.unreadable_code != "lost":
            yield from found_by(causes.OF_ANY_CARD, UnusedCards(facts, [card], card.maker))


def nvidias_driver(facts: PcFacts) -> Iterator[Finding]:
    """NVIDIA's driver is missing, does not run, does not match, or does not list a card."""
    driver = facts.driver
    if driver.is_silent:
        return
    left = [card for card in facts.nvidia_cards if not card.is_apart]
    case = UnusedCards(facts, left)
    if case.has_two_versions:
        yield from found_by(causes.OF_NVIDIAS_DRIVER, case)
        return
    cards = [card for card in left if not facts.is_dropped(card)]
    if driver.error is not None:
        is_absent = driver.error_code in ("not_installed", "not_running")
        if cards or not (is_absent or facts.nvidia_cards):
            yield from found_by(causes.OF_NVIDIAS_DRIVER, UnusedCards(facts, cards))
        return
    for card in cards:
        is_held = card.unreadable_code == "not_served" or card.has_open_driver
        if is_held and not facts.needed_driver(card):
            yield from found_by(causes.OF_NVIDIAS_CARD, UnusedCards(facts, [card]))


def other_makers_cards(facts: PcFacts) -> Iterator[Finding]:
    """Linux has no driver for a card of AMD's or Intel's, or the PyTorch for it cannot use it."""
    engine = facts.engine
    kind = engine.build_kind if engine is not None else ""
    for card, known in maker_cards(facts.inventory):
        is_bare = card.unreadable_code == "no_driver" and card.kernel_driver is None
        is_wanted = card.build_kind == kind or not known.is_integrated
        if is_bare and is_wanted and not card.is_apart and facts.system == "Linux":
            yield from found_by(causes.OF_LINUX, UnusedCards(facts, [card], card.maker))
    if engine is None or kind not in ("rocm", "xpu") or engine.cards_asleep:
        return
    rows, maker = (causes.OF_ROCM if kind == "rocm" else causes.OF_XPU), MAKERS[kind]
    cards = _wanted(facts, kind)
    if not engine.cuda_available:
        reason = engine.cuda_reason or "PyTorch gives no reason."
        is_of_one_maker = all(card.build_kind == kind for card in facts.inventory.cards)
        groups = [cards] if is_of_one_maker else [[card] for card in cards]
        for group in groups if cards or facts.inventory.is_wsl else ():
            yield from found_by(rows, UnusedCards(facts, group, maker, engine.start_error, reason))
    elif not uncounted_cards(facts.numbered, engine):
        for card in cards:
            is_for_it = kind != "rocm" or _has_chip(card, engine.arch_list)
            if card.torch_index is None and is_for_it:
                yield from found_by(rows, UnusedCards(facts, [card], maker, None, _WITHOUT_LIST))


def start_failed(facts: PcFacts, found: Sequence[Finding]) -> Iterator[Finding]:
    """CUDA does not start although driver and build match, and no other finding explains it."""
    engine, probe = facts.cuda_build, facts.probe
    cards = [*facts.cards, *facts.sleeping]
    if engine is None or not cards or _is_explained(facts, found):
        return
    if not (engine.cuda_available or engine.cards_asleep):
        reason, error = engine.cuda_reason, engine.start_error
    elif probe is not None and probe.error is not None:
        reason = f"{probe.error.rstrip('.')}, in a new process."
        error = probe.start_error
    else:
        return
    reason = reason or "PyTorch gives no reason."
    yield from found_by(causes.OF_CUDA, UnusedCards(facts, cards, error=error, reason=reason))


def _is_explained(facts: PcFacts, found: Sequence[Finding]) -> bool:
    others = {card.identity for card in facts.others}
    codes = {one.code for one in found if one.device_uuid not in others}
    hidden = [one for one in found if one.code == "hidden_by_environment"]
    return not _EXPLAINING.isdisjoint(codes) or len(hidden) == len(facts.cards) > 0


def _wanted(facts: PcFacts, kind: str) -> list[Device]:
    """Return the cards that a kind of build is for; integrated ones only if there is no other."""
    judged = {card.identity: one for card, one in facts.judged_cards}
    inside = {identity for identity, one in judged.items() if one.card.is_integrated}
    cards = [
        card
        for card in (*facts.numbered, *facts.inventory.unread_cards)
        if card.build_kind == kind
        and not card.is_apart
        and card.unreadable_code not in ("asleep", "no_driver", "silent")
        and (card.identity not in judged or judged[card.identity].may_have_build)
    ]
    return [card for card in cards if card.identity not in inside] or cards


def _has_chip(card: Device, arch_list: Sequence[str]) -> bool:
    return not arch_list or lists_gfx(arch_list, card.architecture or "")


_RULES: tuple[Callable[[PcFacts], Iterator[Finding]], ...] = (
    card_findings.driver_not_answering,
    torch_findings.engine_missing,
    card_findings.driver_updated,
    cards_of_any_maker,
    nvidias_driver,
    other_makers_cards,
    card_findings.card_lost,
    card_findings.wrong_sum,
    card_findings.driver_dropped_card,
    card_findings.driver_older_than_card,
    card_findings.driver_too_old,
    torch_findings.build_without_cuda,
    torch_findings.no_code_for_card,
    torch_findings.kernel_failed,
    card_findings.device_busy,
    torch_findings.hidden_by_environment,
    torch_findings.build_for_card,
    card_findings.no_nvidia_card,
    torch_findings.no_build_for_card,
    torch_findings.other_build_for_card,
    card_findings.card_unreadable,
    card_findings.not_as_named,
    card_findings.slow_link,
    card_findings.card_asleep,
    card_findings.mixed_order,
    torch_findings.integrated_first,
    torch_findings.not_tested,
    card_findings.mig_instances,
    card_findings.wsl_limits,
    torch_findings.ok,
    torch_findings.ok_by_maker,
)


def find(
    inventory: Inventory,
    engine: EngineDescribed | None,
    *,
    probe: PcProbed | None = None,
    readings: Sequence[Reading] = (),
    links: Mapping[str, Link] | None = None,
    system: str | None = None,
    machine: str | None = None,
    absence: str = "",
    program: Program | None = None,
) -> tuple[Finding, ...]:
    """Return the findings, worst first, with an ``ok`` for every card that PyTorch can use.

    Args:
        inventory: the devices that the sensor reader found.
        engine: the engine's description of itself; None before it is known, which leaves only
            the findings that do not depend on PyTorch.
        probe: the results of a real kernel on each card, if the cards were tested.
        readings: the sensor readings since then, oldest first.
        links: the fastest link of each card under load, by identity; None takes it from
            ``readings``.
        system: "Linux" or "Windows"; this PC's if None.
        machine: "x86_64" or "aarch64"; this PC's if None.
        absence: why there is no PyTorch for an engine; empty if there is one.
        program: the program that the commands are for; this one if None.
    """
    facts = PcFacts(
        inventory,
        engine,
        system or operating_system.system(),
        machine or operating_system.machine(),
        probe,
        readings,
        links,
        absence,
    )
    found: list[Finding] = []
    for rule in _RULES:
        found.extend(rule(facts))
    found.extend(start_failed(facts, found))
    found = _once(found)
    program = program or own_program()
    return tuple(
        msgspec.structs.replace(
            finding,
            tone=KINDS[finding.code],
            command=_typed(finding.command, program, facts),
        )
        for finding in worst_first(found)
    )


def _once(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings without a card's that another one explains."""
    explained = {one.device_uuid for one in found if one.code in _SAYS_WHY}
    return [
        one for one in found if one.code != "card_unreadable" or one.device_uuid not in explained
    ]


def _typed(command: str, program: Program, facts: PcFacts) -> str:
    """Return a command as the user types it, or PyTorch's page where the user has no Python.

    What changes the PC itself cannot be typed inside a container.
    """
    signs = facts.inventory.signs
    if signs is not None and signs.sandbox and command.startswith(_OF_THE_PC):
        return ""
    return program.typed(command) or (TORCH_PAGE if command else "")
