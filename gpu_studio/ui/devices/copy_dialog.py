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

from gpu_studio.ui.eliding import ComboBox
from gpu_studio.ui.parts import Text, resize_on_screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

FORMS = (("text", "Text"), ("markdown", "Markdown, for a forum"))
_SIZE = (760, 560)


class CopyDialog(QDialog):
    """A preview that follows format and mask; its button copies exactly the shown text.

    Args:
        report: returns everything known in a format, masked or not.
    """

    def __init__(self, report: Callable[[str, bool], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.copy.dialog")
        self.setWindowTitle("Copy the report on this PC")
        resize_on_screen(self, _SIZE)
        self._report = report
        self._form = ComboBox()
        self._form.setObjectName("devices.copy.form")
        self._form.setAccessibleName("Format")
        for form, title in FORMS:
            self._form.addItem(title, form)
        self._whole = QCheckBox("Include UUIDs, users and folders")
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
        line.addWidget(self._form)
        line.addWidget(self._whole)
        line.addStretch(1)
        column.addWidget(self._text, 1)
        column.addLayout(foot)
        foot.addWidget(self._message, 1)
        foot.addWidget(buttons)
        self._form.currentIndexChanged.connect(self._show_text)
        self._whole.toggled.connect(self._show_text)
        self._show_text()

    def _show_text(self) -> None:
        masked = not self._whole.isChecked()
        self._text.setPlainText(self._report(self._form.currentData(), masked))
        self._message.setText("" if masked else "Nothing is masked: check before you share it.")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
        self._message.setText("Copied.")
