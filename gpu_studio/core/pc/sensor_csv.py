"""Readings as lines of a table that a spreadsheet opens: a line a device, a column a sensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.csv_lines import csv_line
from gpu_studio.core.pc.clock_events import clock_event_words
from gpu_studio.core.pc.devices import Telemetry

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Device, Inventory, Reading

_FIELDS = tuple(field.name for field in msgspec.structs.fields(Telemetry))
_HEAD = ("time", "reader_clock_s", "device", "name", "uuid", *_FIELDS, "clock_events", "trouble")


def csv_head() -> str:
    """Return the first line; every column carries its unit in its name."""
    return csv_line(_HEAD)


def csv_lines(reading: Reading, inventory: Inventory, time_text: str) -> str:
    """Return a line for each device; a cell is empty where the device refuses to tell.

    Args:
        reading: what was read.
        inventory: the devices it is about.
        time_text: the time of day, ISO 8601.
    """
    cards = {card.uuid: card for card in reading.cards}
    lines = []
    for device in inventory.devices:
        card = cards.get(device.identity)
        if device.kind == "cpu":
            lines.append(_device_line(device, reading, time_text, reading.cpu, ""))
        elif card is not None:
            trouble = card.error or ""
            lines.append(_device_line(device, reading, time_text, card.telemetry, trouble))
    return "".join(lines)


def _device_line(
    device: Device, reading: Reading, time_text: str, telemetry: Telemetry, trouble: str
) -> str:
    values = (getattr(telemetry, field) for field in _FIELDS)
    return csv_line(
        (
            time_text,
            f"{reading.taken_at_s:.3f}",
            device.address or "",
            device.name,
            device.uuid or "",
            *values,
            clock_event_words(telemetry.clock_event_reasons) or "",
            trouble,
        )
    )
