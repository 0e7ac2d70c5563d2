"""The Switcher's workload pages: feeding, mixed precision and cuDNN, several cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QWidget

from gpu_studio.core.benchmark.options import (
    are_ways_kept_busy,
    compare_ways,
    explain_option,
    findings_of,
    label_of,
    value_words,
)
from gpu_studio.core.benchmark.run import PARTS_BESIDE_MEDIAN, RunState
from gpu_studio.core.notice import Action, action_label
from gpu_studio.core.units import format_bytes, format_duration, format_size
from gpu_studio.model.benchmark.comparison_model import ComparisonModel
from gpu_studio.model.pages import AMP, FEEDING, SEVERAL_CARDS
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.eliding import ComboBox, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.page_keys import runs, stops
from gpu_studio.ui.parts import (
    Card,
    Text,
    button,
    keep_room,
    section,
    show_whole_rows,
    table,
)
from gpu_studio.ui.plots.curve_set import LossPlot
from gpu_studio.ui.result_bars import BarPart, ResultBar, ResultBars
from gpu_studio.ui.scroll_page import PageColumn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtGui import QShowEvent

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription
    from gpu_studio.model.pages import PageId
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_FEEDING = (
    "Your data is in the PC's memory, but a card computes in its own memory. Compare the time and "
    "memory that each way of copying a batch takes."
)
_AMP = (
    "Automatic mixed precision multiplies in 16 bits and keeps the weights in 32 bits. It helps on "
    "cards with hardware support. The loss should take the same course."
)
_CUDNN = (
    "cuDNN has several algorithms for a convolution. “benchmark” times them first and uses the "
    "fastest. “deterministic” uses only algorithms with bit-for-bit reproducible results."
)
_CARDS = (
    "One batch is split over several workers, and their gradients are combined. It helps if "
    "computing takes longer than combining the results."
)
_HEAD = ("Variant", "Per call", "Peak memory", "Time breakdown", "State")
_BUDGET_S = 1.0
# The work has the device's color; each part before it is gray with its own hatch.
_WORK = ("compute", "computing")
_HATCHES = (Qt.BrushStyle.SolidPattern, Qt.BrushStyle.BDiagPattern, Qt.BrushStyle.DiagCrossPattern)
_BOX_SPACING = 14
_MOST_WAYS = 16


def feeding_page(studio: Studio, theme: Theme) -> QWidget:
    """Make the page of the workload ``dataloader``, card by card."""
    return _page(studio, theme, FEEDING, "Data loading", (("dataloader", _FEEDING),))


def amp_page(studio: Studio, theme: Theme) -> QWidget:
    """Make the page of the workloads ``train_step`` and ``conv2d``."""
    return _page(
        studio, theme, AMP, "Mixed precision, speed and reproducibility",
        (("train_step", _AMP), ("conv2d", _CUDNN)),
    )  # fmt: skip


def cards_page(studio: Studio, theme: Theme) -> QWidget:
    """Make the page of the workload ``data_parallel``."""
    cards = sum(not row.is_cpu for row in studio.board.usable_here)
    # A single card has nothing to split the work with; the CPU splits it among processes.
    checked = {} if cards == 1 else {"processes": ("1", "2")}
    parts = (("data_parallel", _CARDS),)
    return _page(studio, theme, SEVERAL_CARDS, "One model on several cards", parts, checked)


def _page(
    studio: Studio,
    theme: Theme,
    shown_on: PageId,
    title: str,
    parts: tuple[tuple[str, str], ...],
    checked: Mapping[str, Sequence[str]] | None = None,
) -> QWidget:
    page = PageColumn(title)
    page.column.addWidget(Text(title, "title"))
    cards = []
    for place, (workload, sentence) in enumerate(parts):
        model = ComparisonModel(studio, workload, shown_on, page)
        cards.append(ComparisonCard(studio, theme, model, sentence, checked, is_primary=place == 0))
    for part in (*cards, *(card.results for card in cards)):
        page.column.addWidget(part)
    page.column.addStretch(1)
    return page


class ComparisonCard(Card):
    """Runs every combination of the checked options and shows them together.

    Args:
        studio: the application's state.
        theme: the current look.
        model: the runs of one workload.
        sentence: the subject of the page.
        checked: the option values that are checked at first; by default, all values of the first
            option and the default of every other.
        is_primary: whether its Run is the page's primary button, which Ctrl+Return presses.

    Attributes:
        results: what comes of it, for the end of the page: it moves no control.
    """

    def __init__(
        self,
        studio: Studio,
        theme: Theme,
        model: ComparisonModel,
        sentence: str,
        checked: Mapping[str, Sequence[str]] | None = None,
        *,
        is_primary: bool = True,
        parent: QWidget | None = None,
    ) -> None:
        self._name = f"switcher.{model.workload}"
        super().__init__(parent, name=self._name)
        self.column.setSpacing(9)
        self._settings, self._theme, self.model = studio.settings, theme, model
        self._first_checked, self._is_primary = checked or {}, is_primary
        self._boxes: dict[str, dict[str, QCheckBox]] = {}
        self._described: WorkloadDescription | None = None
        self._title = Text(role="value", name=f"{self._name}.title")
        self._sentence = Text(sentence, "muted", name=f"{self._name}.sentence", wraps=True)
        self._reason = Text(role="amber", name=f"{self._name}.reason", wraps=True)
        self._choices = QGridLayout()
        self._choices.setHorizontalSpacing(14)
        self._choices.setVerticalSpacing(6)
        keep_room(self._title)
        self.column.addWidget(self._title)
        self._add_controls()
        for widget in (self._sentence, self._reason):
            self.column.addWidget(widget)
        self.column.addLayout(self._choices)
        self._make_results()
        model.description_changed.connect(self._show_described)
        model.runs_changed.connect(self._show_runs)
        self._show_description()
        self._show_runs()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _add_controls(self) -> None:
        self._device, self._size = ComboBox(), ComboBox()
        for box, name, spoken in (
            (self._device, "device", "Device"), (self._size, "size", "Size"),
        ):  # fmt: skip
            box.setObjectName(f"{self._name}.{name}")
            box.setAccessibleName(spoken)
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)  # they come later
        self._run = button("Run", self._start, name=f"{self._name}.run")
        self._stop = button("Stop", self.model.stop, name=f"{self._name}.stop")
        self._run.setProperty("primary", self._is_primary)
        self._device.currentIndexChanged.connect(self._show_buttons)
        runs(self._run, self._is_primary)
        stops(self._stop)
        self._progress = Text(role="muted", name=f"{self._name}.progress")
        self._run.setText(_ways_words(_MOST_WAYS))
        row = FlowRow(self._run, self._device, self._size, self._stop, self._progress)
        self._run.setMinimumWidth(self._run.sizeHint().width())  # with any number of variants
        self.column.addWidget(row)

    def _make_results(self) -> None:
        self.results = Card(name=f"{self._name}.results.card")
        self.results.column.setSpacing(9)
        self._subject = Text(role="value", name=f"{self._name}.results.title")
        self._verdict = Text(name=f"{self._name}.verdict", wraps=True)
        again = action_label(Action.RUN_AGAIN)
        self._again = button(again, self.model.run_again, name=f"{self._name}.again")
        self._again.hide()
        self._rows = TextRows(_HEAD, (1, 2), self)
        self._table = table(
            self._rows, name=f"{self._name}.results", accessible_name="Variants side by side"
        )
        self._table.horizontalScrollBar().rangeChanged.connect(self._fit_table)
        self._bars_title = section("Time breakdown of one call")
        self._bars = ResultBars(self._theme, name=f"{self._name}.parts", is_dense=True)
        self._bars.setAccessibleName("Time breakdown of one call")
        self._beside = Text(role="muted", name=f"{self._name}.parts.note", wraps=True)
        self._beside.hide()
        self._plot: LossPlot | None = None
        self._findings = Text(role="muted", name=f"{self._name}.findings", wraps=True)
        self.results.column.addWidget(self._subject)
        self.results.column.addWidget(self._verdict)
        self.results.column.addWidget(self._again, 0, Qt.AlignmentFlag.AlignLeft)
        for widget in (
            self._table, self._bars_title, self._bars, self._beside, self._findings,
        ):  # fmt: skip
            self.results.column.addWidget(widget)

    # ── choices ──────────────────────────────────────────────────────────────────────────────

    def _show_described(self) -> None:
        if self.isVisible():
            self._show_description()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._show_description()

    def _show_description(self) -> None:
        workload = self.model.description
        if workload is not None and workload != self._described:
            self._described = workload
            self._title.setText(workload.title)
            self._subject.setText(workload.title)
            self._list_options(workload)
            self._size.clear()
            for size in workload.sizes:
                self._size.addItem(format_size(size, workload.size_text), size)
            self._size.setCurrentIndex(len(workload.sizes) // 2)
        self._title.setVisible(workload is not None)  # its title is not known before
        items = [(row.number or "", row.identity) for row in self.model.devices]
        show_items(self._device, items)
        for choice in (self._device, self._size):  # there is nothing to choose before
            choice.setVisible(workload is not None and choice.count() > 0)
        if not self._is_primary:  # it stands below one that is as high as its options
            self.setVisible(workload is not None or not self.model.what_is_missing)
        self._show_buttons()

    @property
    def _why_not(self) -> str:
        if self.model.what_is_missing:
            return self.model.what_is_missing
        workload = self.model.description
        if workload is None:
            return f"This engine has no workload {self.model.workload}."
        return workload.skipped

    def _list_options(self, workload: WorkloadDescription) -> None:
        while (item := self._choices.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        self._boxes = {}
        for place, option in enumerate(workload.options):
            title = Text(option.title, "muted")
            sentence = explain_option(option)
            title.setToolTip(sentence)
            self._choices.addWidget(title, place, 0)
            boxes: dict[str, QCheckBox] = {}
            for number, value in enumerate(option.values):
                words = value_words(value)
                box = QCheckBox(words)
                box.setObjectName(f"{self._name}.{option.name}.{value}")
                box.setAccessibleName(f"{option.title}: {words}")
                box.setToolTip(sentence)
                # The first option is the subject of the page: all its values at once.
                first = self._first_checked.get(option.name)
                box.setChecked(place == 0 or number == 0 if first is None else value in first)
                box.toggled.connect(self._show_buttons)
                boxes[value] = box
            self._choices.addWidget(FlowRow(*boxes.values(), spacing=_BOX_SPACING), place, 1)
            self._boxes[option.name] = boxes
        self._choices.setColumnStretch(1, 1)

    @property
    def _checked(self) -> dict[str, list[str]]:
        return {
            name: [value for value, box in boxes.items() if box.isChecked()]
            for name, boxes in self._boxes.items()
        }

    def _start(self) -> None:
        budget_s = min(self._settings.choices.budget_s, _BUDGET_S)
        self.model.start(
            self._device.currentData(),
            self._size.currentData(),
            budget_s,
            self._checked,
        )

    def _show_buttons(self) -> None:
        reason = self._why_not
        self._reason.show_text(reason)
        ways = len(self.model.combinations(self._checked))
        self._run.setText(_ways_words(ways))
        self._run.setAccessibleName(self._run.text())
        self._run.setEnabled(self.model.can_start and self._device.count() > 0 and not reason)
        self._stop.setVisible(self.model.is_running)

    # ── results ──────────────────────────────────────────────────────────────────────────────

    def _show_runs(self) -> None:
        self._show_buttons()
        runs, workload = self.model.runs, self._described
        shown = bool(runs) and workload is not None
        self.results.setVisible(shown)
        for widget in (self._table, self._verdict, self._findings, self._bars, self._bars_title):
            widget.setVisible(shown)
        if workload is None or not runs:
            self._progress.setText("")
            self._again.hide()
            return
        labels = [label_of(self._distinct_options(run), workload) for run in runs]
        results = {
            label: run.result
            for label, run in zip(labels, runs, strict=True)
            if run.result is not None
        }
        self._rows.set_rows([_cells(label, run) for label, run in zip(labels, runs, strict=True)])
        self._fit_table()
        over = sum(run.state.is_over for run in runs)
        self._progress.setText(f"{over} of {len(runs)}" if self.model.is_running else "")
        failures = list(dict.fromkeys(run.failure.message for run in runs if run.failure))
        verdict = " ".join([compare_ways(results), *failures]).strip()
        self._verdict.show_text(verdict)
        self._again.setVisible(self.model.can_start and are_ways_kept_busy(results))
        self._show_bars(results)
        self._show_losses(results)
        findings = "\n".join(findings_of(results))
        self._findings.show_text(findings)

    def _fit_table(self) -> None:
        """Fit the height to the rows, with space for a scroll bar if the columns need it."""
        show_whole_rows(self._table)

    def _distinct_options(self, run: Run) -> dict[str, str]:
        """Return the options that differ among the runs, and always the first one."""
        options = run.request.options
        return {
            name: value
            for place, (name, value) in enumerate(options.items())
            if place == 0 or len({one.request.options.get(name) for one in self.model.runs}) > 1
        }

    def _show_bars(self, results: dict[str, RunFinished]) -> None:
        bars = [
            _bar(label, result, self._theme.device_role(result.device))
            for label, result in results.items()
            if len(result.details.parts_s) > 1
        ]
        self._bars.show_bars(bars)
        self._bars.setVisible(bool(bars))
        self._bars_title.setVisible(bool(bars))
        self._beside.show_text(PARTS_BESIDE_MEDIAN if bars else "")

    def _show_losses(self, results: dict[str, RunFinished]) -> None:
        curves = {
            label: result.details.curves["loss"]
            for label, result in results.items()
            if result.details.curves.get("loss")
        }
        if curves and self._plot is None:
            self._plot = LossPlot(self._theme, name=f"{self._name}.loss")
            self._plot.setAccessibleName("Loss over steps")
            column = self.results.column
            column.insertWidget(column.indexOf(self._findings), self._plot)
        if self._plot is not None:
            self._plot.setVisible(bool(curves))
            self._plot.show_curves(curves)


def _ways_words(ways: int) -> str:
    return "Run" if ways == 1 else f"Run {ways} variants"


def _cells(label: str, run: Run) -> tuple[str, ...]:
    result = run.result
    if result is None:
        summary = run.summary
        state = run.phase if not run.state.is_over and run.phase else run.state.value
        return label, format_duration(summary.median_s) if summary else "–", "–", "–", state
    peak = result.details.peak_allocated_bytes
    state = RunState.FINISHED.value
    if run.stamp is not None and run.stamp.doubts:
        state = f"doubtful: {run.stamp.doubts[0]}"
    parts = ", ".join(f"{name} {format_duration(s)}" for name, s in result.details.parts_s.items())
    return (
        label, format_duration(result.median_s), "–" if peak is None else format_bytes(peak),
        parts or "–", state,
    )  # fmt: skip


def _bar(label: str, result: RunFinished, role: str) -> ResultBar:
    """Return a run's parts: its work in the device's color, the rest in hatched grays."""
    parts, others = [], 0
    for name, part_s in result.details.parts_s.items():
        if name in _WORK:
            parts.append(BarPart(name, part_s, role))
        else:
            parts.append(BarPart(name, part_s, "other", _HATCHES[others % len(_HATCHES)]))
            others += 1
    whole_s = sum(result.details.parts_s.values())
    return ResultBar(label, role, whole_s, format_duration(whole_s), parts=tuple(parts))
