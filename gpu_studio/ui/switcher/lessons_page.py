"""The Lessons page: break it, see the real error or number, fix it, compare, read why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontDatabase, QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QTextEdit

from gpu_studio.core.notice import Action, action_label
from gpu_studio.ui.page import Box, Columns, Each, Flow, Fold, Later, Own, Page, Stack
from gpu_studio.ui.page_controls import ChosenRows, Pick
from gpu_studio.ui.page_parts import Bars, Heading, Press, Rows, Words
from gpu_studio.ui.plots.live_plot import LossPlot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.switcher.pitfall_words import ChangedLine
    from gpu_studio.model.switcher.lessons_model import LessonsModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme


_CHANGES = "What changes in the code: − before, + after"
_MOST_LESSONS = 16
_FIGURE_LETTERS = 90


class LessonsPage(Page):
    """The lessons at the left; the chosen one and what came of it at the right."""

    model: LessonsModel

    def __init__(self, model: LessonsModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("switcher.lab", model, theme, parent)

    def parts(self) -> Sequence[Part]:
        m = self.model
        return (
            Columns(
                Stack(
                    ChosenRows(of="lesson", title="Lessons", head=("Lesson", "Shows"),
                               rows=self._lessons, one=lambda: m.lesson and m.lesson.name,
                               wide=1, most_rows=_MOST_LESSONS, name="list"),
                    stretch=4,
                ),
                Stack(
                    self._head(), self._result(), self._outcomes(), self._details(), self._code(),
                    self._why(), stretch=5,
                ),
            ),
        )  # fmt: skip

    def _head(self) -> Part:
        m = self.model
        return Box(
            Words(lambda: m.lesson and m.lesson.title, "headline", name="title", presented=True),
            Words(lambda: m.lesson and m.lesson.sentence, name="sentence"),
            Words(lambda: m.reason, "amber", name="reason"),
            Flow(
                Press("Break it", m.break_it, name="break", key="run", shown=lambda: m.is_mistake,
                      enabled=lambda: m.can_run, primary=lambda: not m.is_broken),
                Press("Fix it", m.fix_it, name="fix", shown=lambda: m.is_mistake,
                      enabled=lambda: m.can_run, primary=lambda: m.is_broken),
                Press("Run", m.run, name="run", key="run", primary=True,
                      shown=lambda: m.is_experiment, enabled=lambda: m.can_run),
                Pick(of="device", title="Device", name="device", items=lambda: m.devices,
                     shown=lambda: len(m.devices) > 1),
                Press("Stop", m.stop, name="stop", key="stop", shown=lambda: m.is_running,
                      keeps_room=True),
                Words(lambda: m.progress, "muted", wraps=False, name="progress"),
            ),
            name="head_card",
        )  # fmt: skip

    def _result(self) -> Part:
        m = self.model
        return Box(
            Each(lambda: range(len(m.figures)), self._figure, share_letters=_FIGURE_LETTERS,
                 presented=True),
            Words(lambda: m.answer, "value", name="answer"),
            Press(action_label(Action.RUN_AGAIN), m.run, name="again",
                  shown=lambda: m.offers_again),
            Words(lambda: m.untested, "muted", name="untested"),
            shown=lambda: m.figures or m.answer.sentence or m.untested,
            tone=lambda: m.answer.tone, name="answer_card", presented=True,
        )  # fmt: skip

    def _outcomes(self) -> Part:
        return Columns(
            self._part("broken"), self._part("fixed"),
            shown=lambda: self.model.part("broken").title or self.model.part("fixed").title,
        )  # fmt: skip

    def _part(self, part: str) -> Part:
        m = self.model
        return Box(
            Words(lambda: m.part(part).title, "value", name=f"{part}.title"),
            Words(lambda: m.part(part).sentence, name=f"{part}.sentence"),
            name=f"{part}_card", shown=lambda: m.part(part).title, tone=lambda: m.part(part).tone,
        )  # fmt: skip

    def _details(self) -> Part:
        m = self.model
        return Box(
            Words(lambda: m.part("broken").error, "failure", name="broken.error"),
            Words(lambda: m.part("fixed").error, "failure", name="fixed.error"),
            Rows("Other figures", ("", "Broken", "Fixed"), lambda: m.other_figures,
                 name="others", shown=lambda: m.other_figures),
            Heading("How busy the device was", shown=lambda: m.busy),
            Bars("How busy the device was", lambda: m.busy, full=1, name="busy",
                 shown=lambda: m.busy),
            Later(lambda: (Own(self._make_plot, lambda plot: plot.show_losses(m.losses),
                               name="loss"),), shown=lambda: m.losses),
            Fold(Words(lambda: m.busy_note, name="busy.note"),
                 Words(lambda: m.findings, name="findings"),
                 label="Details", name="details", shown=lambda: m.findings),
            name="details_card",
            shown=lambda: m.has_details,
        )  # fmt: skip

    def _code(self) -> Part:
        m = self.model
        return Box(
            Words(_CHANGES, "value", name="code_heading"),
            Words(lambda: m.stand_in, "muted", name="stand_in"),
            Own(lambda: ChangedCode(self.theme, name="switcher.lab.code"),
                lambda code: code.show_places(m.changed_code)),
            name="code_card", shown=lambda: m.changed_code,
        )  # fmt: skip

    def _why(self) -> Part:
        m = self.model
        return Fold(
            Words(lambda: m.lesson and m.lesson.why, name="why"),
            Words(lambda: m.lesson and m.lesson.remedy, name="remedy"),
            Words(lambda: m.lesson and m.lesson.source, "muted", name="source"),
            Words(lambda: m.lesson and m.lesson.remark, "amber", name="remark"),
            label="Why?", name="about", shown=lambda: m.lesson,
        )  # fmt: skip

    def _lessons(self) -> dict[str, tuple[str, str]]:
        """Return the title of each lesson, with a tick if it was done, and what it shows."""
        m = self.model
        return {
            one.name: (f"{one.title}{'  ✔' if one.name in m.done else ''}", one.shows)
            for one in m.lessons
        }

    def _figure(self, number: int) -> Part:
        m = self.model
        return Stack(
            Words(lambda: m.figures[number][0], "muted"),
            Bars("Broken and fixed, or each way", lambda: m.figures[number][1],
                 name=f"figures.{number}"),
            presented=True,
        )  # fmt: skip

    def _make_plot(self) -> LossPlot:
        plot = LossPlot(self.theme, name="switcher.lab.loss")
        plot.setAccessibleName("Loss over steps")
        return plot


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
