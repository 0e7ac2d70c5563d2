"""The Code pane: the PyTorch code for your last action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from gpu_studio.core.switcher.whole_snippet import runs_as_it_stands
from gpu_studio.ui.parts import GAP, Text, button, letters, section

if TYPE_CHECKING:
    from gpu_studio.model.studio import Studio


_PASTED = "Runs as is in any Python with PyTorch."
_STARTED = "Needs several processes: see its first line for how to start them."
_POINT_SIZE = 8.5  # smaller, because lines of code are longer than the pane is wide


class CodePane(QDockWidget):
    """Runnable lines with a Copy button; they follow the last action."""

    def __init__(self, studio: Studio, parent: QWidget | None = None) -> None:
        super().__init__("Code", parent)
        self.setObjectName("code.dock")
        self.setAllowedAreas(
            Qt.DockWidgetArea.RightDockWidgetArea | Qt.DockWidgetArea.BottomDockWidgetArea
        )
        self._text = QPlainTextEdit()
        self._text.setObjectName("code")
        self._text.setReadOnly(True)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(_POINT_SIZE)
        self._text.setFont(font)
        self._text.setAccessibleName("PyTorch code for your last action")
        self._text.setPlaceholderText("Your PyTorch code will appear here.")
        self._copy = button("Copy", self._copy_code, name="code.copy", tip="Copy this code")
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, GAP, GAP, GAP)
        head = QHBoxLayout()
        column.addLayout(head)
        head.addWidget(section("Code"))
        head.addStretch()
        head.addWidget(self._copy)
        column.addWidget(self._text, 1)
        self._note = Text(role="muted", name="code.note", wraps=True)
        column.addWidget(self._note)
        self.setTitleBarWidget(QWidget())
        self.setWidget(page)
        self.setMinimumWidth(letters(self, 30))
        self._show(studio.snippet)
        studio.snippet_changed.connect(self._show)

    def take_last_place(self) -> None:
        """Put the pane last in Tab order, even if other widgets are created later."""
        for widget in (self._copy, self._text):
            last = self.window().previousInFocusChain()
            # Qt puts no widget after one that does not accept focus.
            while last is not None and last.focusPolicy() is Qt.FocusPolicy.NoFocus:
                last = last.previousInFocusChain()
            if last is not None and last is not widget:
                QWidget.setTabOrder(last, widget)

    def _show(self, snippet: str) -> None:
        self._text.setPlainText(snippet)
        self._copy.setEnabled(bool(snippet))
        self._note.setText(_PASTED if runs_as_it_stands(snippet) else _STARTED)

    def _copy_code(self) -> None:
        QGuiApplication.clipboard().setText(self._text.toPlainText())
