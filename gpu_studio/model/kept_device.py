"""Which card a kept run is of: the same one in any slot, and not its twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.device_name import is_cpu, name_at, pc_of

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.kept_run import KeptHeader
    from gpu_studio.model.devices.device_board import DeviceBoard


def kept_card(header: KeptHeader, board: DeviceBoard) -> str:
    """Return the permanent name of a kept run's card; empty for a recording.

    A run of an older version has its device's name instead, unless only one card is called so.
    """
    name = header.result.device_name
    if header.result.recording:
        return ""
    return header.card or board.card_named(name) or name


def kept_name(header: KeptHeader, board: DeviceBoard, name: str) -> str:
    """Return the name of a kept run's device, with its number if another card is called so, too.

    Args:
        header: the kept run.
        board: the devices of this PC.
        name: the name in the usual case.
    """
    result = header.result
    name = name_at(pc_of(result.device), name)
    if result.recording:
        return f"{name}, recorded"
    row = board.row(header.card) if header.card else None
    if row is not None and board.card_named(row.name) != row.identity and not row.is_cpu:
        return row.label
    is_own_card = header.card and not is_cpu(result.device) and not pc_of(result.device)
    is_out = is_own_card and row is None and board.is_complete
    return f"{name}, not in this PC now" if is_out else name


def doubt_note(header: KeptHeader) -> str:
    """Return what a kept run does not say: which card it is of, and whether it is undamaged."""
    result = header.result
    is_known = header.card or result.recording or is_cpu(result.device)
    doubts = (
        (not is_known, "its card is known by its name only"),
        (header.is_unchecked, "its file has no checksum that would show damage"),
    )
    said = " and ".join(sentence for is_doubtful, sentence in doubts if is_doubtful)
    return f"An older version kept it: {said}." if said else ""
