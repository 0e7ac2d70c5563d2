"""Findings about cards of AMD's and Intel's with a build of PyTorch for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices.access import obstacle_of, probe_of, uncounted_cards
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.devices.untested import is_tested, untested_sentence
from gpu_studio.core.notice import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.pc_facts import PcFacts


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
                sentence=f"{untested_sentence(maker)} Make one, and send it.",
                evidence="A recording has the measured times, the memory's counters and the "
                "sensors' readings. It has no names of yours, no UUIDs and no processes.",
                command="gpu-studio record",
                action=Action.RECORD,
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
