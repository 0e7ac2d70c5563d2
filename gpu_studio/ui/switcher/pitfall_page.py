"""The Pitfalls page: break it, see the real error or number, fix it, compare both, read why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.notice import Tone
from gpu_studio.core.switcher.pitfall_words import (
    changed_lines,
    compared_figures,
    format_figure,
    is_reached,
)
from gpu_studio.ui.eliding import ComboBox, show_items
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, stops
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Card,
    Text,
    button,
    keep_room,
    letters,
    set_property,
)
from gpu_studio.ui.plots.curve_set import LossPlot
from gpu_studio.ui.result_bars import ResultBar, ResultBars
from gpu_studio.ui.scroll_page import PageColumn, bring_into_view
from gpu_studio.ui.switcher.changed_code import ChangedCode

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.messages.pitfall_messages import (
        Figure,
        PitfallDescription,
        PitfallOutcome,
    )
    from gpu_studio.model.switcher.pitfalls import PitfallsModel, Tried
    from gpu_studio.ui.parts import Role
    from gpu_studio.ui.theme import Theme

_LIST_LETTERS = 28
_ITEM_MARGINS = 32  # the style sheet's margins beside a title, and the gap after its icon
_WIDE_LETTERS = 140  # of the page; on a narrower page, fixed is under broken


# By which parts of a pitfall have run, broken and fixed: an icon, its color, and words. Every entry
# has an icon: a title does not move when its pitfall is tried.
_STATES = {
    (False, False): ("play", "muted", "not tried yet"),
    (True, False): ("warning", "amber", "broken"),
    (False, True): ("check", "muted", "fixed"),
    (True, True): ("check", "good", "broken and fixed"),
}
_CODE_HEADING = "What the fix changes in the code: − broken, + fixed"
_REASONS: dict[str, Role] = {"why": "", "remark": "amber", "remedy": "", "source": "muted"}
_TITLES = {"broken": "Broken", "fixed": "Fixed"}


class PitfallPage(QWidget):
    """The pitfalls on the left; the chosen one, broken and fixed, on the right."""

    def __init__(self, theme: Theme, model: PitfallsModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("switcher.lab")
        self.model = model
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(MARGIN)
        column = QVBoxLayout()
        column.setSpacing(GAP)
        line.addLayout(column, 1)
        self._fill_list(column, theme)
        page = PageColumn("Chosen pitfall", self)
        self._is_new = False
        line.addWidget(page, 3)
        self._fill_page(page.column, theme)
        model.pitfalls_changed.connect(self._list_pitfalls)
        model.tried_changed.connect(self._show_tried)
        model.running_changed.connect(self._show_running)
        self._list_pitfalls()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _fill_list(self, column: QVBoxLayout, theme: Theme) -> None:
        self._list = QListWidget()
        self._list.setObjectName("switcher.lab.list")
        self._list.setAccessibleName("Pitfalls")
        self._icons = {ran: icon(name, theme, role) for ran, (name, role, _) in _STATES.items()}
        side = self._list.fontMetrics().ascent()
        self._list.setIconSize(QSize(side, side))
        self._list.setFrameShape(QListWidget.Shape.NoFrame)
        self._list.setMinimumWidth(letters(self._list, _LIST_LETTERS))
        self._list.setWordWrap(True)
        self._list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.currentRowChanged.connect(self._show_chosen)
        self._devices = ComboBox()
        self._devices.setObjectName("switcher.lab.device")
        self._devices.setAccessibleName("Device for the pitfall")
        column.addWidget(Text("Break it on purpose", "title"))
        column.addWidget(self._devices)
        card = Card(name="switcher.lab.list_card")
        card.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        card.column.setContentsMargins(4, 6, 4, 6)
        card.column.addWidget(self._list)
        column.addWidget(card)
        column.addStretch(1)

    def _fill_page(self, column: QVBoxLayout, theme: Theme) -> None:
        self._title = Text(role="title", name="switcher.lab.title", wraps=True)
        self._sentence = Text(name="switcher.lab.sentence", wraps=True)
        self._break = button("Break it", self._break_it, name="switcher.lab.break", primary=True)
        self._fix = button("Fix it", self._fix_it, name="switcher.lab.fix")
        self._stop = button("Stop", self.model.stop, name="switcher.lab.stop")
        stops(self._stop)
        self._failure_card = Card(name="switcher.lab.failure_card")
        self._failure_card.set_tone(Tone.FAILURE)
        self._failure = Text(name="switcher.lab.failure", wraps=True)
        self._failure_card.column.addWidget(self._failure)
        self._lesson = LessonCard(theme)
        self._broken = OutcomeCard(theme, "broken")
        self._fixed = OutcomeCard(theme, "fixed")
        self._why_card = Card(name="switcher.lab.why_card")
        self._why, self._remark, self._remedy, self._source = (
            Text(role=role, name=f"switcher.lab.{name}", wraps=True)
            for name, role in _REASONS.items()
        )
        why, fix = Text("Why", "value"), Text("The fix", "value")
        for text in (why, self._why, self._remark, fix, self._remedy, self._source):
            self._why_card.column.addWidget(text)
        head = QHBoxLayout()
        column.addLayout(head)
        head.setSpacing(8)
        head.addWidget(self._title, 1)
        for widget in (self._stop, self._break, self._fix):
            head.addWidget(widget, 0, Qt.AlignmentFlag.AlignTop)
        keep_room(self._stop)
        column.addWidget(self._sentence)
        column.addWidget(self._failure_card)
        column.addWidget(self._lesson)
        self._story = QGridLayout()
        self._story.setSpacing(GAP)
        column.addLayout(self._story)
        column.addStretch(1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()
        self._fit_list()

    def _arrange(self) -> None:
        tried = self.model.tried(self.chosen.name) if self.chosen else None
        both = tried is not None and tried.broken is not None and tried.fixed is not None
        beside = both and self.width() > letters(self, _WIDE_LETTERS)
        top = Qt.AlignmentFlag.AlignTop
        for widget in (self._broken, self._why_card, self._fixed):
            self._story.removeWidget(widget)
        self._story.addWidget(self._broken, 0, 0, top)
        self._story.addWidget(self._fixed, *((0, 1) if beside else (1, 0)), top)
        self._story.addWidget(self._why_card, 2, 0, 1, 2 if beside else 1)
        self._story.setColumnStretch(0, 1)
        self._story.setColumnStretch(1, 1 if beside else 0)

    # ── the choice ───────────────────────────────────────────────────────────────────────────

    @property
    def chosen(self) -> PitfallDescription | None:
        """The chosen pitfall; None until the engine has started."""
        row, pitfalls = self._list.currentRow(), self.model.pitfalls
        return pitfalls[row] if 0 <= row < len(pitfalls) else None

    def choose(self, name: str) -> None:
        names = [pitfall.name for pitfall in self.model.pitfalls]
        self._list.setCurrentRow(names.index(name))

    def _list_pitfalls(self) -> None:
        pitfalls = self.model.pitfalls
        row = max(self._list.currentRow(), 0)
        self._list.blockSignals(True)
        self._list.clear()
        for pitfall in pitfalls:
            self._list.addItem(QListWidgetItem(pitfall.title))
        metrics = self._list.fontMetrics()
        widest = max((metrics.horizontalAdvance(one.title) for one in pitfalls), default=0)
        least = letters(self._list, _LIST_LETTERS)
        beside = self._list.iconSize().width() + _ITEM_MARGINS
        self._list.setMinimumWidth(max(least, widest + beside))
        self._list.setCurrentRow(row if pitfalls else -1)
        self._list.blockSignals(False)
        devices = self.model.devices if pitfalls else ()
        show_items(self._devices, [(row.number or "", row.identity) for row in devices])
        self._devices.setVisible(len(devices) > 1)
        for pitfall in pitfalls:
            self._mark(pitfall.name)
        self._fit_list()
        self._show_chosen()

    def _fit_list(self) -> None:
        """Make the list as high as its entries: the tab scrolls."""
        heights = [self._list.sizeHintForRow(row) for row in range(self._list.count())]
        self._list.setFixedHeight(sum(heights) + 2 * self._list.frameWidth())

    def _show_chosen(self) -> None:
        pitfall = self.chosen
        is_there = pitfall is not None
        shown: tuple[QWidget, ...] = (self._break, self._fix, self._why_card)
        for widget in shown:
            widget.setVisible(is_there)
        if pitfall is None:
            self._title.setText(self.model.what_is_missing)
            for hidden in (self._failure_card, self._lesson, self._broken, self._fixed, self._stop):
                hidden.setVisible(False)
            return
        self._title.setText(pitfall.title)
        self._sentence.setText(pitfall.sentence)
        self._why.setText(pitfall.why)
        self._remark.show_text(pitfall.remark)
        self._remedy.setText(pitfall.remedy)
        self._source.setText(pitfall.source)
        self._show_tried(pitfall.name)
        self._show_running()

    def _show_tried(self, name: str) -> None:
        self._mark(name)
        pitfall = self.chosen
        if pitfall is None or pitfall.name != name:
            return
        tried = self.model.tried(name)
        self._failure.setText(tried.failure)
        self._failure_card.setVisible(bool(tried.failure))
        self._show_next()
        self._lesson.show_tried(tried)
        is_earlier = bool(tried.failure)
        self._broken.show_outcome(tried.broken, tried.device, is_earlier=is_earlier)
        self._fixed.show_outcome(
            tried.fixed, tried.device, has_paid=tried.has_paid, is_earlier=is_earlier
        )
        self._arrange()

    def _show_new(self) -> None:
        self._is_new = False
        bring_into_view(self._lesson if self._failure_card.isHidden() else self._failure_card)

    def _mark(self, name: str) -> None:
        """Show beside a pitfall's title which parts have run."""
        names = [pitfall.name for pitfall in self.model.pitfalls]
        if name not in names:
            return
        item, tried = self._list.item(names.index(name)), self.model.tried(name)
        if item is not None:
            title = self.model.pitfalls[names.index(name)].title
            ran = tried.broken is not None, tried.fixed is not None
            item.setIcon(self._icons[ran])
            words = f"{title}: {_STATES[ran][2]}"
            item.setData(Qt.ItemDataRole.AccessibleTextRole, words)
            item.setToolTip(f"{words}\n{self.model.pitfalls[names.index(name)].sentence}")

    def _show_running(self) -> None:
        running = self.model.running
        for widget in (self._break, self._fix):
            widget.setEnabled(self.model.can_run)
        self._stop.setVisible(running is not None)
        self._show_next()
        if running is None and self._is_new:
            self._show_new()

    def _show_next(self) -> None:
        """Let one button, and Ctrl+Return, do what comes next: break it, then fix it."""
        tried = self.model.tried(self.chosen.name) if self.chosen else None
        is_broken = tried is not None and tried.broken is not None and tried.fixed is None
        for widget, is_next in ((self._break, not is_broken), (self._fix, is_broken)):
            set_property(widget, "primary", is_next)
            runs(widget, is_next)

    def _break_it(self) -> None:
        self._run("broken")

    def _fix_it(self) -> None:
        self._run("fixed")

    def _run(self, part: str) -> None:
        if self.chosen is not None:
            self._is_new = True
            self.model.run(self.chosen.name, part, self._devices.currentData())


class LessonCard(Card):
    """What the fix changes: a pair of bars for each figure, a sentence, and the lines of code.

    It is hidden before a part has run.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="switcher.lab.lesson_card")
        self._theme = theme
        self._pairs: dict[str, tuple[Text, ResultBars]] = {}
        self._comparison = Text(role="value", name="switcher.lab.fixed.comparison", wraps=True)
        self._heading = Text(_CODE_HEADING, "value", name="switcher.lab.code_heading", wraps=True)
        self._code = ChangedCode(theme, name="switcher.lab.code")
        self._untested = Text(role="muted", name="switcher.lab.untested", wraps=True)
        for widget in (self._comparison, self._untested, self._heading, self._code):
            self.column.addWidget(widget)
        self.hide()

    def show_tried(self, tried: Tried) -> None:
        """Show the figures of both parts, or of the one that has run; nothing beside a failure."""
        figures = _figures(tried) if not tried.failure else []
        for before, now in figures:
            self._show_pair(before, now)
        shown = {known.name for pair in figures for known in pair if known is not None}
        for name, widgets in self._pairs.items():
            for widget in widgets:
                widget.setVisible(name in shown)
        self._comparison.show_text(tried.comparison)
        self._untested.show_text(tried.untested)
        pays = Tone.GOOD if tried.has_paid else Tone.AMBER
        self.set_tone(pays if tried.comparison else Tone.PLAIN)
        places = changed_lines(tried.broken_snippet, tried.fixed_snippet)
        self._code.show_places(places)
        self._heading.setVisible(bool(places))
        self._code.setVisible(bool(places))
        has_run = tried.broken is not None or tried.fixed is not None
        self.setVisible(has_run and not tried.failure)

    def _show_pair(self, before: Figure | None, now: Figure | None) -> None:
        known = before or now
        assert known is not None
        helped = before is not None and now is not None and is_reached(before, now)
        title, bars = self._pairs.get(known.name) or self._add_pair(known.name)
        title.setText(known.title)
        bars.setAccessibleName(known.title)
        bars.show_bars(
            [
                ResultBar(name, role, *((figure.value, format_figure(figure)) if figure else ()))
                for name, role, figure in (
                    ("Broken", "failure", before),
                    ("Fixed", "good" if helped else "amber", now),
                )
            ]
        )

    def _add_pair(self, name: str) -> tuple[Text, ResultBars]:
        title = Text(role="muted", wraps=True)
        bars = ResultBars(self._theme, name=f"switcher.lab.change.{name}", is_dense=True)
        place = self.column.indexOf(self._comparison)
        for offset, widget in enumerate((title, bars)):
            self.column.insertWidget(place + offset, widget)
        self._pairs[name] = title, bars
        return title, bars


def _figures(tried: Tried) -> list[tuple[Figure | None, Figure | None]]:
    """Return each figure that the fix should change, before and after it; None has not run."""
    if tried.broken is not None and tried.fixed is not None:
        return list(compared_figures(tried.broken, tried.fixed))
    broken = tried.broken.figures if tried.broken is not None else ()
    fixed = tried.fixed.figures if tried.fixed is not None else ()
    return [(one, None) for one in broken if one.aim] + [(None, one) for one in fixed if one.aim]


class OutcomeCard(Card):
    """One part of a pitfall; hidden until it has run."""

    def __init__(self, theme: Theme, part: str, parent: QWidget | None = None) -> None:
        name = f"switcher.lab.{part}"
        super().__init__(parent, name=f"{name}_card")
        self._theme, self._part = theme, part
        self._title = Text(role="value", name=f"{name}.title")
        self._sentence = Text(name=f"{name}.sentence", wraps=True)
        self._error = Text(role="failure", name=f"{name}.error", wraps=True)
        self._stand_in = Text(role="muted", name=f"{name}.stand_in", wraps=True)
        self._figures = QGridLayout()
        self._figures.setHorizontalSpacing(16)
        self._figures.setVerticalSpacing(3)
        self._figures.setColumnStretch(1, 1)
        self._plot: LossPlot | None = None
        for widget in (self._title, self._sentence, self._error):
            self.column.addWidget(widget)
        self.column.addLayout(self._figures)
        self.column.addWidget(self._stand_in)
        self.hide()

    def show_outcome(
        self,
        outcome: PitfallOutcome | None,
        device: str,
        *,
        has_paid: bool = True,
        is_earlier: bool = False,
    ) -> None:
        """Show the outcome; None hides the card. An earlier run's beside a failure has no color."""
        self.setVisible(outcome is not None)
        if outcome is None:
            return
        where = "a stand-in" if outcome.stand_in else device
        earlier = " (earlier run)" if is_earlier else ""
        self._title.setText(f"{_TITLES[self._part]}, on {where}{earlier}")
        self._sentence.setText(outcome.sentence)
        self._error.show_text(outcome.error)
        self._stand_in.show_text(f"Stand-in: {outcome.stand_in}" if outcome.stand_in else "")
        is_broken = self._part == "broken"
        is_good = not is_broken and has_paid
        if is_earlier:
            self.set_tone(Tone.PLAIN)
        elif is_broken and outcome.error:
            self.set_tone(Tone.FAILURE)
        else:
            self.set_tone(Tone.GOOD if is_good else Tone.AMBER)
        self._show_figures(outcome)
        self._show_curves(outcome)

    def _show_figures(self, outcome: PitfallOutcome) -> None:
        while (item := self._figures.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        others = (figure for figure in outcome.figures if not figure.aim)  # the bars show those
        for place, figure in enumerate(others):
            self._figures.addWidget(Text(figure.title, "muted"), place, 0)
            self._figures.addWidget(Text(format_figure(figure), "value"), place, 1)

    def _show_curves(self, outcome: PitfallOutcome) -> None:
        if outcome.curves and self._plot is None:
            self._plot = LossPlot(self._theme, name=f"switcher.lab.{self._part}.plot")
            self.column.insertWidget(self.column.indexOf(self._stand_in), self._plot)
        if self._plot is not None:
            self._plot.setVisible(bool(outcome.curves))
            self._plot.show_curves(outcome.curves)
