"""The Lessons page: break it, see the real error or number, fix it, compare, read why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QIcon, QPixmap
from PySide6.QtWidgets import QFrame, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from gpu_studio.core.notice import Action, action_label
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page import Box, Columns, Flow, Fold, Later, Own, Page, Stack
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Bars, Heading, Press, Rows, Words
from gpu_studio.ui.parts import Text, letters
from gpu_studio.ui.plots.loss_plot import LossPlot
from gpu_studio.ui.result_bars import ResultBars, result_bar
from gpu_studio.ui.switcher.changed_code import ChangedCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.messages.pitfall_messages import PitfallDescription
    from gpu_studio.model.bars import Bar
    from gpu_studio.model.switcher.lessons_model import LessonsModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

    _Groups = Sequence[tuple[str, Sequence[PitfallDescription]]]

_CHANGES = "What changes in the code: − before, + after"
_NAME = Qt.ItemDataRole.UserRole
_TWO_COLUMNS = 52  # letters; a narrower list has only the titles
_ROW_PADDING, _COLUMN_GAP = 12, 8
_HEADING_SIZE = 0.87


class LessonsPage(Page):
    """The lessons at the left; the chosen one and what came of it at the right."""

    model: LessonsModel

    def __init__(self, model: LessonsModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("switcher.lab", model, theme, parent)

    def parts(self) -> Sequence[Part]:
        return (
            Columns(
                Stack(
                    Box(Own(self._make_list, self._show_list, name="list"), name="list_card"),
                    stretch=2,
                ),
                Stack(
                    self._head(), self._result(), self._outcomes(), self._details(), self._code(),
                    self._why(), stretch=3,
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
            Own(lambda: FigureBars(self.theme, "switcher.lab.figures"),
                lambda bars: bars.show_figures(m.figures), shown=lambda: m.figures),
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
        return Box(
            Heading("Why"),
            Words(lambda: m.lesson and m.lesson.why, name="why"),
            Heading("The fix", shown=lambda: m.lesson and m.lesson.remedy),
            Words(lambda: m.lesson and m.lesson.remedy, name="remedy"),
            Fold(
                Words(lambda: m.lesson and m.lesson.source, "muted", name="source"),
                Words(lambda: m.lesson and m.lesson.remark, "amber", name="remark"),
                label="Source", name="about", shown=lambda: m.lesson and m.lesson.source,
            ),
            name="why_card", shown=lambda: m.lesson,
        )  # fmt: skip

    def _make_list(self) -> LessonList:
        lessons = LessonList(self.theme)
        lessons.chosen.connect(lambda name: self.model.choose(lesson=name))
        return lessons

    def _show_list(self, lessons: LessonList) -> None:
        m = self.model
        groups = ("MISTAKES", m.mistakes), ("EXPERIMENTS", m.experiments)
        lessons.show_lessons(groups, m.lesson.name if m.lesson is not None else "", m.done)

    def _make_plot(self) -> LossPlot:
        plot = LossPlot(self.theme, name="switcher.lab.loss")
        plot.setAccessibleName("Loss over steps")
        return plot


class FigureBars(QWidget):
    """A title and a group of bars for each figure."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self._theme = theme
        self._groups: list[tuple[Text, ResultBars]] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)

    def show_figures(self, figures: Sequence[tuple[str, Sequence[Bar]]]) -> None:
        while len(self._groups) < len(figures):
            title = Text(role="muted", wraps=True)
            name = f"{self.objectName()}.{len(self._groups)}"
            bars = ResultBars(self._theme, name=name, is_dense=True)
            self._column.addWidget(title)
            self._column.addWidget(bars)
            self._groups.append((title, bars))
        for place, (title, bars) in enumerate(self._groups):
            is_shown = place < len(figures)
            title.setVisible(is_shown)
            bars.setVisible(is_shown)
            if is_shown:
                title.setText(figures[place][0])
                bars.setAccessibleName(figures[place][0])
                bars.show_bars([result_bar(bar, self._theme) for bar in figures[place][1]])


class LessonList(QTreeWidget):
    """The lessons in two groups, each with what it shows, and a tick on what was done.

    Signals:
        chosen(str): the user chose a lesson, by its name.
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName("Lessons")
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(0)
        self.setFrameShape(QFrame.Shape.NoFrame)
        for setter in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            setter(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        side = self.fontMetrics().ascent()
        self.setIconSize(QSize(side, side))
        blank = QPixmap(side, side)
        blank.fill(Qt.GlobalColor.transparent)
        self._icons = {True: icon("check", theme, "good"), False: QIcon(blank)}
        self._theme = theme
        self._shown: tuple[_Groups, frozenset[str]] = (), frozenset()
        self._chosen = ""
        self._items: dict[str, QTreeWidgetItem] = {}
        theme.changed.connect(self._fill)
        self.currentItemChanged.connect(self._on_current_changed)

    def show_lessons(self, groups: _Groups, chosen: str, done: frozenset[str]) -> None:
        self._chosen = chosen
        if self._shown != (groups, done):
            self._shown = groups, done
            self._fill()
        self._show_chosen()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fill(self) -> None:
        groups, done = self._shown
        small = QFont(self.font())
        small.setPointSizeF(small.pointSizeF() * _HEADING_SIZE)
        small.setWeight(QFont.Weight.DemiBold)
        with QSignalBlocker(self):
            self.clear()
            self._items = {}
            for title, group in groups:
                if group:
                    heading = self._added(title, "")
                    heading.setFlags(Qt.ItemFlag.NoItemFlags)
                    heading.setFont(0, small)
                for one in group:
                    item = self._items[one.name] = self._added(one.title, one.shows)
                    words = f"{one.title}: {one.shows}{', done' if one.name in done else ''}"
                    item.setData(0, _NAME, one.name)
                    item.setIcon(0, self._icons[one.name in done])
                    item.setData(0, Qt.ItemDataRole.AccessibleTextRole, words)
                    item.setToolTip(0, f"{words}\n{one.sentence}")
        self._show_chosen()
        self._fit()

    def _added(self, title: str, shows: str) -> QTreeWidgetItem:
        item, metrics = QTreeWidgetItem(self, [title, shows]), self.fontMetrics()
        width = metrics.horizontalAdvance(title) + self.iconSize().width() + _COLUMN_GAP
        item.setSizeHint(0, QSize(width, metrics.height() + _ROW_PADDING))
        item.setForeground(1 if shows else 0, QColor(self._theme.colour("muted")))
        return item

    def _show_chosen(self) -> None:
        item = self._items.get(self._chosen)
        if item is not None and item is not self.currentItem():
            with QSignalBlocker(self):
                self.setCurrentItem(item)

    def _fit(self) -> None:
        """Be as high as all rows: the tab scrolls."""
        is_narrow = self.width() < letters(self, _TWO_COLUMNS)
        self.setColumnHidden(1, is_narrow)
        titles = max(self.sizeHintForColumn(0), 0) + _COLUMN_GAP
        self.setColumnWidth(0, titles)
        self.setMinimumWidth(titles)
        row = self.fontMetrics().height() + _ROW_PADDING
        self.setFixedHeight(row * self.topLevelItemCount() + 2 * self.frameWidth())

    def _on_current_changed(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(item.data(0, _NAME))
