"""The diagnostics for a bug report: a preview with a Copy button.

The diagnostics as a text for a bug report, without personal data.
"""

from __future__ import annotations

import contextlib
import sys
from importlib import metadata
from typing import TYPE_CHECKING

from PySide6.QtCore import QSysInfo, qVersion
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from gpu_studio.core.program_version import program_title
from gpu_studio.core.shared_texts import log_end, own_names, without_names
from gpu_studio.ui.parts import Text, resize_on_screen

if TYPE_CHECKING:
    from pathlib import Path

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
        f"  {finding.sentence} ({finding.detail})" if finding.detail else finding.sentence
        for finding in studio.doctor.findings
    ]
    lines += ["", "The end of the log:", log or "(nothing)"]
    return without_names("\n".join(lines), own_names())


def _pyside() -> str:
    for name in ("PySide6-Essentials", "PySide6"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return "(unknown version)"


_SIZE = (820, 560)
_AFTER_CRASH = (
    "GPU Studio did not close properly last time. The end of its log is below. Your result history "
    "is still there. If the window behaves strangely, reset the settings. The old file is kept "
    "under another name."
)
_ASKED_FOR = "Copy this text into your question or bug report."
_MASKED = "User, PC, folders and UUIDs are masked."


class DiagnosticsDialog(QDialog):
    """Shows the text and copies exactly what it shows.

    Args:
        studio: the shown state.
        log_path: the log; None if there is none.
        bad_end: the end of the log if the last start ended badly; the settings can then be reset.
        parent: the window.
    """

    def __init__(
        self, studio: Studio, log_path: Path | None, bad_end: str | None, parent: QWidget
    ) -> None:
        super().__init__(parent)
        settings = studio.settings if bad_end is not None else None
        log = bad_end if bad_end is not None else log_end(log_path) if log_path else ""
        self._settings = settings
        self.setObjectName("diagnostics")
        self.setWindowTitle("What happened" if settings else "Diagnostics")
        resize_on_screen(self, _SIZE)
        self._text = QPlainTextEdit(diagnostics_text(studio, log))
        self._text.setObjectName("diagnostics.text")
        self._text.setAccessibleName("Diagnostics")
        self._text.setReadOnly(True)
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._message = Text(_MASKED, "muted", name="diagnostics.said", wraps=True)
        role = QDialogButtonBox.ButtonRole.ActionRole
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy diagnostics", role)
        copy.setObjectName("diagnostics.copy")
        copy.clicked.connect(self._copy)
        if settings is not None:
            self._fresh = buttons.addButton("Reset settings", role)
            self._fresh.setObjectName("diagnostics.fresh")
            self._fresh.clicked.connect(self._start_afresh)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.addWidget(Text(_AFTER_CRASH if settings else _ASKED_FOR, wraps=True))
        column.addWidget(self._text, 1)
        column.addWidget(self._message)
        column.addWidget(buttons)
        bar = self._text.verticalScrollBar()
        bar.setValue(bar.maximum() if settings else 0)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
        self._message.setText(f"Copied. {_MASKED}")

    def _start_afresh(self) -> None:
        assert self._settings is not None
        if self._settings.start_afresh():
            self._fresh.setEnabled(False)
            self._message.setText("The settings are back to their defaults.")
        else:
            self._message.setText("Could not move the settings file. The log says why.")
