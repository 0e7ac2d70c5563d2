"""What came of broken or fixed code: the error, the numbers, the curve and the code itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QGridLayout, QPlainTextEdit, QWidget

from gpu_studio.core.switching.pitfall_words import format_figure
from gpu_studio.ui.parts import Card, Text
from gpu_studio.ui.plots.loss_plot import LossPlot

if TYPE_CHECKING:
    from gpu_studio.core.messages.pitfall_messages import PitfallOutcome
    from gpu_studio.ui.theme import Theme

_TITLES = {"broken": "Broken", "fixed": "Fixed"}
_POINT_SIZE = 8.5
_MOST_LINES = 10


class OutcomeCard(Card):
    """One part of a pitfall; hidden until it was run."""

    def __init__(self, theme: Theme, part: str, parent: QWidget | None = None) -> None:
        name = f"switcher.lab.{part}"
        super().__init__(parent, name=f"{name}_card")
        self._theme, self._part = theme, part
        self._title = Text(role="value", name=f"{name}.title")
        self._sentence = Text(name=f"{name}.sentence", wraps=True)
        self._comparison = Text(name=f"{name}.comparison", wraps=True)
        self._error = Text(role="failure", name=f"{name}.error", wraps=True)
        self._stand_in = Text(role="muted", name=f"{name}.stand_in", wraps=True)
        self._figures = QGridLayout()
        self._figures.setHorizontalSpacing(16)
        self._figures.setVerticalSpacing(3)
        self._figures.setColumnStretch(1, 1)
        self._plot: LossPlot | None = None
        self._code = _code_box(f"{name}.code", f"The {part} code")
        for widget in (self._title, self._sentence, self._comparison, self._error):
            self.column.addWidget(widget)
        self.column.addLayout(self._figures)
        self.column.addWidget(self._stand_in)
        self.column.addWidget(self._code)
        self.hide()

    def show_outcome(
        self,
        outcome: PitfallOutcome | None,
        snippet: str,
        device: str,
        comparison: str = "",
        *,
        has_paid: bool = True,
    ) -> None:
        """Show what was seen, and how it compares with the other part; nothing hides the card."""
        self.setVisible(outcome is not None)
        if outcome is None:
            return
        where = "a stand-in" if outcome.stand_in else device
        self._title.setText(f"{_TITLES[self._part]}, with {where}")
        self._sentence.setText(outcome.sentence)
        self._comparison.setText(comparison)
        self._comparison.setVisible(bool(comparison))
        self._error.setText(outcome.error)
        self._error.setVisible(bool(outcome.error))
        self._stand_in.setText(f"Stand-in: {outcome.stand_in}" if outcome.stand_in else "")
        self._stand_in.setVisible(bool(outcome.stand_in))
        is_broken = self._part == "broken"
        is_good = not is_broken and has_paid
        self.set_tone("failure" if is_broken and outcome.error else "good" if is_good else "amber")
        self._show_figures(outcome)
        self._show_curves(outcome)
        self._code.setPlainText(snippet.rstrip())
        lines = min(self._code.blockCount(), _MOST_LINES)
        self._code.setFixedHeight(int(lines * self._code.fontMetrics().lineSpacing()) + 26)

    def _show_figures(self, outcome: PitfallOutcome) -> None:
        while (item := self._figures.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        for place, figure in enumerate(outcome.figures):
            self._figures.addWidget(Text(figure.title, "muted"), place, 0)
            self._figures.addWidget(Text(format_figure(figure), "value"), place, 1)

    def _show_curves(self, outcome: PitfallOutcome) -> None:
        if outcome.curves and self._plot is None:
            self._plot = LossPlot(self._theme, name=f"switcher.lab.{self._part}.plot")
            self.column.insertWidget(self.column.indexOf(self._stand_in), self._plot)
        if self._plot is not None:
            self._plot.setVisible(bool(outcome.curves))
            self._plot.show_curves(outcome.curves)


def _code_box(name: str, accessible_name: str) -> QPlainTextEdit:
    box = QPlainTextEdit()
    box.setObjectName(name)
    box.setAccessibleName(accessible_name)
    box.setReadOnly(True)
    box.setTabChangesFocus(True)
    box.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(_POINT_SIZE)
    box.setFont(font)
    return box
