"""The lines that a fix changes, marked by a sign and a color, wrapped and as high as they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontDatabase, QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QTextEdit

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.switcher.pitfall_words import ChangedLine
    from gpu_studio.ui.theme import Theme

_POINT_SIZE = 8.5
_SIGNS = {False: "− ", True: "+ "}
_BETWEEN = "  …"
_PADDING = 4  # of the document, in pixels


class ChangedCode(QTextEdit):
    """Shows removed and added lines; a click or a drag selects text to copy."""

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme = theme
        self._places: tuple[tuple[ChangedLine, ...], ...] = ()
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        for setter in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            setter(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(_POINT_SIZE)
        self.setFont(font)
        self.document().setDefaultFont(font)
        self.document().setDocumentMargin(_PADDING)
        self.setAccessibleName("Changed lines of code")
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        theme.changed.connect(self._write)

    def show_places(self, places: tuple[tuple[ChangedLine, ...], ...]) -> None:
        if places != self._places:
            self._places = places
            self._write()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _write(self) -> None:
        self.clear()
        cursor = QTextCursor(self.document())
        for number, place in enumerate(self._places):
            if number:
                self._write_line(cursor, _BETWEEN, "muted", "")
            for is_added, text in place:
                shade = "good_soft" if is_added else "failure_soft"
                self._write_line(cursor, _SIGNS[is_added] + text, "text", shade)
        self._fit()

    def _write_line(self, cursor: QTextCursor, text: str, ink: str, shade: str) -> None:
        form = QTextBlockFormat()
        if shade:
            form.setBackground(QColor(self._theme.colour(shade)))
        letter = self.fontMetrics().horizontalAdvance(" ")
        indent = letter * (len(text) - len(text[1:].lstrip()) + 1)  # under the code, not the sign
        form.setLeftMargin(indent)
        form.setTextIndent(-indent)
        if cursor.position():
            cursor.insertBlock(form)
        else:
            cursor.setBlockFormat(form)
        letters = cursor.charFormat()
        letters.setForeground(QColor(self._theme.colour(ink)))
        cursor.insertText(text, letters)

    def _fit(self) -> None:
        # Not from the viewport's height: while this is hidden, that is the one of before.
        frame = self.contentsMargins()
        height = math.ceil(self.document().size().height())
        self.setFixedHeight(height + frame.top() + frame.bottom())
