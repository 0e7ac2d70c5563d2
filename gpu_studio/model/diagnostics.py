"""The diagnostics as a text for a bug report, without personal data."""

from __future__ import annotations

import contextlib
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from PySide6.QtCore import QSysInfo, qVersion

from gpu_studio.core.program_version import program_title
from gpu_studio.core.shared_texts import own_names, without_names

if TYPE_CHECKING:
    from gpu_studio.model.studio import Studio

_UNKNOWN = "not known yet"


def diagnostics_text(studio: Studio, log: str) -> str:
    """Return versions, findings and the end of a log, with user, PC, folders and UUIDs masked.

    Args:
        studio: has the facts about this PC.
        log: the last lines of the log.
    """
    described, inventory = studio.session.description, studio.sensors.inventory
    cards = inventory.cards if inventory else ()
    kernel = f"{QSysInfo.kernelType()} {QSysInfo.kernelVersion()}"
    lines = [
        program_title(),
        f"System: {QSysInfo.prettyProductName()}, {kernel}",
        f"Python {sys.version.split()[0]}, Qt {qVersion()}, PySide {_pyside()}",
        f"PyTorch: {described.torch_version if described else _UNKNOWN}",
        f"NVIDIA driver: {inventory.driver.version or 'none' if inventory else _UNKNOWN}",
        f"Cards: {', '.join(card.name for card in cards) or 'none' if inventory else _UNKNOWN}",
        "",
        "Findings:",
    ]
    lines += [
        f"  {finding.sentence} ({finding.evidence})" if finding.evidence else finding.sentence
        for finding in studio.doctor.findings
    ]
    lines += ["", "The end of the log:", log or "(nothing)"]
    return without_names("\n".join(lines), own_names())


def _pyside() -> str:
    for name in ("PySide6-Essentials", "PySide6"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return "(unknown version)"
