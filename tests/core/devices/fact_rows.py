"""The rows of a device, as the tests read them."""

from __future__ import annotations

import msgspec

from gpu_studio.core.devices.devices import CardReading
from gpu_studio.core.devices.facts import PcSnapshot, facts_of
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.pc import gt_1030, gt_1030_card, reading


def plain(text):
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def rows_of(device, snapshot):
    return {fact.key: fact for group in facts_of(device, snapshot) for fact in group.facts}


def numbered(**changes):
    return gt_1030_card(torch_index=0, **changes)


def card_snapshot(card, engine=None, memory=None, error=None, **telemetry):
    inventory = msgspec.structs.replace(gt_1030(), devices=(gt_1030().cpu, card))
    taken = reading(inventory, **telemetry)
    if error is not None:
        lost = CardReading(uuid=card.identity, telemetry=Telemetry(), error=error)
        taken = msgspec.structs.replace(taken, cards=(lost,))
    return PcSnapshot(inventory=inventory, reading=taken, engine=engine, memory=memory or {})
