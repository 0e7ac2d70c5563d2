"""Help: what the words mean, and how a time is measured."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.glossary import GLOSSARY, HOW_A_TIME_IS_MEASURED
from gpu_studio.ui.parts import GAP, Card, Text, resize_on_screen, section

_SIZE = (760, 620)


class WordsDialog(QDialog):
    """Explains the words, then the method."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("words")
        self.setWindowTitle("Words and how a time is measured")
        resize_on_screen(self, _SIZE)
        page = QWidget()
        page.setProperty("page", True)
        column = QVBoxLayout(page)
        column.setSpacing(GAP)
        method = Card()
        method.column.addWidget(section("How a time is measured"))
        method.column.addWidget(Text(HOW_A_TIME_IS_MEASURED, name="words.method", wraps=True))
        column.addWidget(method)
        words = Card()
        column.addWidget(words)
        words.column.addWidget(section("Words"))
        grid = QGridLayout()
        words.column.addLayout(grid)
        grid.setHorizontalSpacing(2 * GAP)
        grid.setColumnStretch(1, 1)
        for row, (word, meaning) in enumerate(GLOSSARY):
            grid.addWidget(Text(word, "value"), row, 0)
            grid.addWidget(Text(meaning, wraps=True), row, 1)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(page)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        outer = QVBoxLayout(self)
        outer.addWidget(scroll, 1)
        outer.addWidget(buttons)
