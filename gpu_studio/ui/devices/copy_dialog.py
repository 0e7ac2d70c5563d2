"""A dialogue that copies everything known about the PC, in the chosen format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QPlainTextEdit,
    QVBoxLayout,
)

from gpu_studio.ui.parts import Text, resize_on_screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

_SIZE = (760, 560)


class CopyDialog(QDialog):
    """A preview that follows form and mask; its button copies exactly the shown text.

    Args:
        report: returns everything known, masked or not.
    """

    def __init__(self, report: Callable[[bool], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.copy.dialog")
        self.setWindowTitle("Copy the report on this PC")
        resize_on_screen(self, _SIZE)
        self._report = report
        self._fenced = QCheckBox("As Markdown, for a forum")
        self._fenced.setObjectName("devices.copy.markdown")
        self._whole = QCheckBox("Include UUIDs, users, host and folders")
        self._whole.setObjectName("devices.copy.whole")
        self._text = QPlainTextEdit()
        self._text.setObjectName("devices.copy.preview")
        self._text.setAccessibleName("Text to copy")
        self._text.setReadOnly(True)
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._message = Text("", "muted", name="devices.copy.said")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.setObjectName("devices.copy.now")
        copy.clicked.connect(self._copy)
        buttons.rejected.connect(self.reject)
        column, line, foot = QVBoxLayout(self), QHBoxLayout(), QHBoxLayout()
        column.addLayout(line)
        line.addWidget(self._fenced)
        line.addWidget(self._whole)
        line.addStretch(1)
        column.addWidget(self._text, 1)
        column.addLayout(foot)
        foot.addWidget(self._message, 1)
        foot.addWidget(buttons)
        self._fenced.toggled.connect(self._show_text)
        self._whole.toggled.connect(self._show_text)
        self._show_text()

    def _show_text(self) -> None:
        masked = not self._whole.isChecked()
        text = self._report(masked)
        if self._fenced.isChecked():  # three back quotes keep the columns
            lines = text.rstrip().replace("`", "'")
            text = f"```\n{lines}\n```\n"
        self._text.setPlainText(text)
        self._message.setText("" if masked else "Nothing is masked: check before you share it.")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
        self._message.setText("Copied.")
