"""A button that copies what is known of the PC, in the form that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QPushButton, QVBoxLayout, QWidget

from gpu_studio.ui.devices.copy_dialog import CopyDialog
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from gpu_studio.model.pc.devices import DevicesModel
    from gpu_studio.ui.theme import Theme

_FORMS = (("Copy as text", "text"), ("Copy as Markdown", "markdown"), ("Copy as JSON", "json"))
_PREVIEW = "preview"
_TIP = "Copy everything known of this PC"


class CopyButton(QWidget):
    """A menu of forms, a switch for what is masked, and a line that says what was copied."""

    def __init__(self, model: DevicesModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._button = QPushButton("Copy")
        self._button.setObjectName("devices.copy")
        self._button.setIcon(icon("copy", theme))
        self._button.setToolTip(_TIP)
        self._button.setAccessibleName(_TIP)
        menu = QMenu(self._button)
        for title, form in _FORMS:
            action = menu.addAction(title)
            action.setObjectName(f"devices.copy.{form}")
            action.setData(form)
        menu.addSeparator()
        self._unmasked = QAction("With UUIDs, users and folders", menu, checkable=True)
        self._unmasked.setObjectName("devices.copy.unmasked")
        menu.addAction(self._unmasked)
        preview = menu.addAction("Look at it first …")
        preview.setObjectName("devices.copy.look")
        preview.setData(_PREVIEW)
        menu.triggered.connect(self._copy)
        self._button.setMenu(menu)
        self._said = Text("", "muted", name="devices.copied", wraps=True)
        self._said.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._said)
        column.addWidget(self._button)

    def _copy(self, action: QAction) -> None:
        form = action.data()
        if form == _PREVIEW:
            CopyDialog(self._report, self.window()).exec()
        if form in (None, _PREVIEW):
            return
        masked = not self._unmasked.isChecked()
        QGuiApplication.clipboard().setText(self._model.report(form, masked=masked))
        kept = "UUIDs, users and folders are masked." if masked else "Nothing is masked."
        self._said.setText(f"Copied. {kept}")
        self._said.show()

    def _report(self, form: str, masked: bool) -> str:
        return self._model.report(form, masked=masked)
