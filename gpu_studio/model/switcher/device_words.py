"""A device of the Switch page in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.model.devices.device_board import DeviceRow


class DeviceWords(msgspec.Struct, frozen=True, kw_only=True):
    """A device in words.

    Attributes:
        number: ``cpu``, ``cuda:0``, ``hidden``, or a dash if PyTorch has no number for it.
        facts: its number, its free memory, why it is hidden.
        warning: why PyTorch cannot use the card, or its worst problem; empty if there is none.
        use: the label of the button that switches to it; empty for no button.
        only: the label of the button that hides the others; empty for no button.
    """

    identity: str
    address: str | None
    number: str
    name: str
    facts: str
    warning: str = ""
    is_used: bool = False
    use: str = ""
    can_use: bool = False
    only: str = ""
    can_show_only: bool = False


def device_words(row: DeviceRow, telemetry: Telemetry | None) -> DeviceWords:
    """Return a device in words, without its buttons.

    Args:
        row: the device.
        telemetry: its newest reading; None before the first.
    """
    number, is_hidden = _number(row), row.obstacle is Obstacle.HIDDEN
    free = f"{_free(telemetry)} RAM free" if row.is_cpu else _free_of(row, telemetry)
    facts = (
        number,
        free if _free(telemetry) or not row.is_cpu else "",
        row.reason.rstrip(".") if row.is_cpu else "",
        "hidden by CUDA_VISIBLE_DEVICES" if is_hidden else "",
    )
    return DeviceWords(
        identity=row.identity,
        address=row.address,
        number=number,
        name=name_at(row.pc, short_name(row.name)),
        facts=_joined(*facts),
        warning="" if row.is_cpu else _warning(row),
    )


def _number(row: DeviceRow) -> str:
    if row.is_cpu:
        return row.number or row.identity
    if row.obstacle is Obstacle.HIDDEN:
        return "hidden"
    is_counted = row.obstacle in (None, Obstacle.NO_CODE)
    return (row.number if is_counted else None) or "–"


def _warning(row: DeviceRow) -> str:
    if row.obstacle is not None:
        return "" if row.obstacle in (Obstacle.NO_ENGINE, Obstacle.HIDDEN) else row.reason
    return row.finding.sentence if row.finding is not None else ""


def _free_of(row: DeviceRow, telemetry: Telemetry | None) -> str:
    total_bytes = row.device.memory_total_bytes if row.device is not None else None
    total = format_bytes(total_bytes) if total_bytes else ""
    free = _free(telemetry)
    if free and total:
        number, unit = free.split()
        return f"{number if total.endswith(unit) else free} of {total} free"
    return f"{free} free" if free else total


def _free(telemetry: Telemetry | None) -> str:
    if telemetry is None or telemetry.memory_free_bytes is None:
        return ""
    return format_bytes(telemetry.memory_free_bytes)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)
