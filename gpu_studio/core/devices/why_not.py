"""The cards that PyTorch is for and cannot use, each case with the first cause that its marks show.

The causes are the table in `causes`; here is which cards are one case, of every maker alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices import causes
from gpu_studio.core.devices.access import uncounted_cards
from gpu_studio.core.devices.causes import found_by
from gpu_studio.core.devices.devices import MAKERS
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.devices.maker_cards import maker_cards
from gpu_studio.core.devices.unused_cards import UnusedCards

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.devices.pc_facts import PcFacts

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
    left = [card for card in facts.nvidia_cards if not is_apart(card)]
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
        if is_bare and is_wanted and not is_apart(card) and facts.system == "Linux":
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


def is_apart(card: Device) -> bool:
    """Return whether a card is lent, lost or off the bus: no driver and no build changes that."""
    return bool(card.lender) or card.is_off_bus or card.unreadable_code == "lost"


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
        and not is_apart(card)
        and card.unreadable_code not in ("asleep", "no_driver", "silent")
        and (card.identity not in judged or judged[card.identity].may_have_build)
    ]
    return [card for card in cards if card.identity not in inside] or cards


def _has_chip(card: Device, arch_list: Sequence[str]) -> bool:
    return not arch_list or lists_gfx(arch_list, card.architecture or "")
