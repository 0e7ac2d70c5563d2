"""The newest check of a card, as a standard run carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.standard_record import StandardCheck
from gpu_studio.core.check.check_folder import FOLDER_NAME, CheckFolder
from gpu_studio.core.check.check_record import fingerprint_of
from gpu_studio.core.device_name import is_cpu

if TYPE_CHECKING:
    from pathlib import Path


def newest_check(folder: Path | None, address: str, identity: str) -> StandardCheck | None:
    """Return the newest check of a card on this PC; None without one, and for the CPU.

    Args:
        folder: the folder of the results; None if nothing is kept.
        address: the card's.
        identity: PyTorch's permanent name of the card; empty if unknown.
    """
    if folder is None or is_cpu(address) or not identity:
        return None
    record = CheckFolder(folder / FOLDER_NAME).earlier(fingerprint_of(identity))
    if record is None:
        return None
    return StandardCheck(verdict=record.verdict, minutes=record.minutes, made_at=record.started_at)
