"""What would be copied, before it is: in each form, masked or whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QPlainTextEdit,
    QVBoxLayout,
)

from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QWidget

FORMS = (("text", "Text"), ("markdown", "Markdown, for a forum"), ("json", "JSON"))
_SIZE = (760, 560)


class CopyDialog(QDialog):
    """A preview that changes with form and mask; its button copies exactly what is shown.

    Args:
        report: returns everything known in a form, masked or not.
    """

    def __init__(self, report: Callable[[str, bool], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.copy.dialog")
        self.setWindowTitle("Copy what is known of this PC")
        self.resize(*_SIZE)
        self._report = report
        self._form = QComboBox()
        self._form.setObjectName("devices.copy.form")
        self._form.setAccessibleName("Form")
        for form, title in FORMS:
            self._form.addItem(title, form)
        self._whole = QCheckBox("With serial numbers, UUIDs, users, host and folders")
        self._whole.setObjectName("devices.copy.whole")
        self._text = QPlainTextEdit()
        self._text.setObjectName("devices.copy.preview")
        self._text.setAccessibleName("What will be copied")
        self._text.setReadOnly(True)
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._said = Text("", "muted", name="devices.copy.said")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        copy.setObjectName("devices.copy.now")
        copy.clicked.connect(self._copy)
        buttons.rejected.connect(self.reject)
        line = QHBoxLayout()
        line.addWidget(self._form)
        line.addWidget(self._whole)
        line.addStretch(1)
        foot = QHBoxLayout()
        foot.addWidget(self._said, 1)
        foot.addWidget(buttons)
        column = QVBoxLayout(self)
        column.addLayout(line)
        column.addWidget(self._text, 1)
        column.addLayout(foot)
        self._form.currentIndexChanged.connect(self._show_text)
        self._whole.toggled.connect(self._show_text)
        self._show_text()

    def _show_text(self) -> None:
        masked = not self._whole.isChecked()
        self._text.setPlainText(self._report(self._form.currentData(), masked))
        self._said.setText("" if masked else "Nothing is masked: think who will read it.")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
        self._said.setText("Copied.")
