"""The page Run: the same work on every device, with its curves as it runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QPlainTextEdit, QToolButton

from gpu_studio.core.benchmark.options import explain_option, value_words
from gpu_studio.core.notice import Tone
from gpu_studio.core.texts import plain_text
from gpu_studio.model.benchmark.run_model import SETTINGS, SHOWN_DTYPES, TIME
from gpu_studio.ui.ask_adapters import ask_press, ask_words
from gpu_studio.ui.benchmark.benchmark_results import BenchmarkResults, swatch
from gpu_studio.ui.benchmark.hero_line import HeroLine
from gpu_studio.ui.benchmark.live_view import LiveView
from gpu_studio.ui.benchmark.run_export import RunExport
from gpu_studio.ui.benchmark.size_view import SizeView
from gpu_studio.ui.page import (
    Beside,
    Box,
    Columns,
    Each,
    Flow,
    Fold,
    Later,
    Own,
    Page,
    Stack,
    Turning,
)
from gpu_studio.ui.page_controls import Line, Pick, Switch, Tick
from gpu_studio.ui.page_parts import Bars, Heading, More, Press, ProgressBar, Rows, Words
from gpu_studio.ui.plots.live_plot import LossPlot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtCore import QObject
    from PySide6.QtGui import QKeyEvent, QShowEvent

    from gpu_studio.core.messages.pitfall_messages import PitfallDescription
    from gpu_studio.core.messages.run_messages import WorkloadOption
    from gpu_studio.core.parameter import Parameter
    from gpu_studio.model.benchmark.run_model import RunModel
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_PLOT_SHARE = 0.52  # of the window's height, at least
_SIDE_LETTERS = 32
_PANE_LINES = 8
_SWITCHES = [one for one in SETTINGS if one.is_switch]
_SIZES_TIP = "For example 512, 1024, 2048; or 64..4096 for every doubling. Enter runs."


def _pane() -> QPlainTextEdit:
    pane = QPlainTextEdit()
    pane.setReadOnly(True)
    pane.setTabChangesFocus(True)
    pane.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
    pane.setAccessibleName("What your code printed")
    pane.setFixedHeight(_PANE_LINES * pane.fontMetrics().lineSpacing())
    return pane


def _show_printed(pane: QPlainTextEdit, text: str) -> None:
    shown = "\n".join(plain_text(line) for line in text.rstrip("\n").split("\n"))
    if pane.toPlainText() != shown:
        pane.setPlainText(shown)


class RunPage(Page):
    """Choices at the left; the answer, the curves, why, and the table at the right.

    Args:
        studio: names the devices.
        model: what it shows.
        theme: gives the colors.
        watch: opens a recording.
        repeat: opens the published experiment.
    """

    model: RunModel

    def __init__(
        self,
        studio: Studio,
        model: RunModel,
        theme: Theme,
        watch: Callable[[], object],
        repeat: Callable[[], object],
    ) -> None:
        self._studio, self._watch, self._repeat = studio, watch, repeat
        benchmark, board = model.benchmark, studio.board
        self._live = LiveView(benchmark, board, theme)
        self._sizes = SizeView(benchmark, board, theme)
        self._export = RunExport(studio, model, theme, lambda: (self.plot, self.caption))
        super().__init__("benchmark", model, theme)
        why = self.findChild(QToolButton, "benchmark.why.more")
        assert why is not None
        self._why = why
        self._why.toggled.connect(self.update_parts)

    def parts(self) -> Sequence[Part]:
        """Return the column of choices beside the result."""
        return (
            Beside(
                Box(*self._choices(), name="choices"),
                Stack(*self._result(), stretch=1),
                side_letters=_SIDE_LETTERS,
                stretch=1,
            ),
        )

    def head_parts(self) -> Sequence[Part]:
        """Return other ways to a result, and after the first run what is done with it."""
        m = self.model

        def is_empty() -> bool:
            return not m.has_curves and bool(m.workloads)

        return (
            Press(
                "Repeat a published test", self._repeat, name="view.published", shown=is_empty,
                tip="Compare this PC with the GT 1030 experiment",
            ),
            Press(
                "Open a recording…", self._watch, name="view.recording", shown=is_empty,
                icon="file", tip="Watch runs from another PC",
            ),
            Press(
                "Clear", m.clear, name="clear", icon="trash",
                shown=lambda: m.has_curves, enabled=lambda: not m.is_busy,
                tip="Remove these runs from the table",
            ),
            More(
                "Export", lambda: self._export.items, name="export", icon="export", key="save",
                shown=lambda: bool(m.benchmark.runs),
                tip="Export the results or the plot, or copy the table",
            ),
        )  # fmt: skip

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the height of the window."""
        super().showEvent(event)
        self.window().installEventFilter(self)
        self._fit_plot()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Give the curves at least half of the window."""
        if event.type() is QEvent.Type.Resize and watched is self.window():
            self._fit_plot()
        return super().eventFilter(watched, event)

    def _fit_plot(self) -> None:
        place = self._live.parentWidget()
        if place is not None:
            place.setMinimumHeight(round(_PLOT_SHARE * self.window().height()))

    # ── the parts ────────────────────────────────────────────────────────────────────────────

    def _choices(self) -> Sequence[Part]:
        m = self.model

        def is_wide() -> bool:
            return not self.is_narrow

        return (
            Turning(
                Flow(
                    Press(
                        "Run", m.run, name="run", primary=True, icon="play", key="run",
                        enabled=lambda: m.can_run,
                        tip=lambda: m.problem or "Time every chosen combination",
                    ),
                    Press(
                        "Stop", m.stop, name="stop", icon="stop", key="stop",
                        enabled=lambda: m.can_stop,
                    ),
                ),
                Stack(
                    ProgressBar(
                        "Progress of the plan", lambda: m.benchmark.progress, name="progress",
                        shown=lambda: m.is_busy, keeps_room=True,
                    ),
                    Words(
                        lambda: m.brief_status if self.is_narrow else m.status,
                        role="muted", name="progress.text", cut=lambda: self.is_narrow,
                    ),
                    stretch=1,
                ),
                Heading("Workload", shown=is_wide),
                Pick(
                    of="workload", title="Workload", name="workload", least_letters=11,
                    items=lambda: m.workload_items,
                    tip=lambda: m.workload.sentence if m.workload else "",
                ),
                Words(lambda: m.workload_note, role="muted", name="devices.note"),
                Heading("Devices", shown=is_wide),
                Each(lambda: m.devices, self._device, name="devices"),
                ask_press(m),
                ask_words(m),
                Heading("Sizes", shown=is_wide),
                Line(
                    of="sizes", title="Sizes", name="sizes", tip=_SIZES_TIP,
                    wrong=lambda: bool(m.mistake), entered=m.run, shown=is_wide,
                ),
                Words(lambda: m.sizes_note, role="muted", name="sizes.note", shown=is_wide),
                Fold(*self._options(), label="More options", name="options"),
                Words(lambda: m.summary, role="muted", name="options.summary", shown=is_wide),
                Words(lambda: m.outcome, role="muted", name="outcome", shown=is_wide),
            ),
            Words(lambda: m.warning, role="amber", name="warning"),
            Press(
                "Start PyTorch anew", m.start_engine, name="fresh_engine",
                shown=lambda: m.has_stopped_engine,
            ),
        )  # fmt: skip

    def _options(self) -> Sequence[Part]:
        m = self.model
        return (
            Line(
                of="sizes", title="Sizes", name="options.sizes", tip=_SIZES_TIP, is_titled=True,
                wrong=lambda: bool(m.mistake), entered=m.run, shown=lambda: self.is_narrow,
            ),
            Each(lambda: m.workload.options if m.workload and not m.is_own else (), self._option),
            Heading("Precision"),
            Flow(*map(self._dtype, SHOWN_DTYPES), name="dtype"),
            Pick(
                of="settings", key=TIME.name, title=TIME.title, name="budget",
                items=lambda: m.budget_items, tip=TIME.sentence,
            ),
            Heading("How to measure"),
            *(self._mode(one) for one in _SWITCHES if not one.is_expert),
            Fold(
                *(self._mode(one) for one in _SWITCHES if one.is_expert),
                label="For experts", name="expert",
            ),
        )  # fmt: skip

    def _device(self, row: DeviceRow) -> Part:
        role = self.theme.device_role(row.address) if row.address else "other"
        m = self.model
        return Tick(
            of="uses", key=row.identity, usual=m.is_usual(row), title=row.label,
            name=f"devices.{row.address or row.identity}", tip=lambda: m.why_not(row) or row.name,
            picture=swatch(self.theme, role, self.devicePixelRatioF()),
            enabled=lambda: not m.why_not(row),
        )  # fmt: skip

    def _option(self, option: WorkloadOption) -> Part:
        return Pick(
            of="options", key=option.name, title=option.title, name=f"option.{option.name}",
            items=[(value_words(value), value) for value in option.values], is_titled=True,
            tip=explain_option(option),
        )  # fmt: skip

    def _dtype(self, dtype: str) -> Part:
        return Tick(
            of="dtypes", key=dtype, usual=False, title=dtype, name=f"dtype.{dtype}",
            enabled=lambda: self.model.offers(dtype),
        )  # fmt: skip

    def _lesson(self, lesson: PitfallDescription) -> Part:
        return Press(
            f"Lesson: {lesson.title}", partial(self.model.open_lesson, lesson.name), link=True,
            name=f"own.lesson.{lesson.name}", tip=lesson.sentence,
        )  # fmt: skip

    def _mode(self, setting: Parameter) -> Part:
        name = setting.name
        return Tick(
            of="settings", key=name, usual=False, title=setting.title, name=f"mode.{name}",
            enabled=lambda: not self.model.refusal(name),
            tip=lambda: self.model.refusal(name) or setting.sentence,
        )  # fmt: skip

    def _result(self) -> Sequence[Part]:
        m = self.model

        def is_doubted() -> bool:
            return m.verdict.tone is Tone.AMBER

        hero = HeroLine(self.theme, name="benchmark.hero", act=m.run_again)
        return (
            Own(hero, lambda it: it.show_hero(m.hero), presented=True),
            Box(
                Columns(
                    Words(
                        lambda: self.caption, role="muted", name="plot.caption", stretch=1,
                        presented=True,
                    ),
                    Press(
                        "Find the crossover", m.find_crossover, name="sweep",
                        enabled=lambda: m.can_find_crossover,
                        shown=lambda: len(m.devices) > 1,
                        tip="Measures every power of two between the smallest and the largest "
                        "size, then closer to where the faster device changes",
                    ),
                    Switch(
                        of="view", title="What the curves are over", name="view",
                        items=(("Time", "time"), ("Size", "sizes")), presented=True,
                    ),
                ),
                Own(
                    self._live, self._show_time, stretch=1,
                    shown=lambda: m.choices.view == "time", presented=True,
                ),
                Own(
                    self._sizes, self._show_sizes, stretch=1,
                    shown=lambda: m.choices.view == "sizes", presented=True,
                ),
                name="plots", stretch=1,
            ),
            Box(
                Columns(
                    Words("Your code", role="title", stretch=1),
                    Press(
                        "Race it", m.race, name="own.race", icon="flag",
                        enabled=lambda: m.can_race,
                        tip="Both sides run it as often as they can, with a picture if it makes "
                        "an image",
                    ),
                ),
                Words(lambda: m.own_findings, name="own.findings"),
                Each(lambda: m.own_lessons, self._lesson),
                Words("Printed", role="muted", shown=lambda: m.own.printed),
                Own(
                    _pane, lambda pane: _show_printed(pane, m.own.printed),
                    shown=lambda: m.own.printed, name="own.printed",
                ),
                name="own", shown=lambda: m.is_own and m.own.is_opened,
            ),
            Box(
                Fold(
                    Words(lambda: m.verdict, name="why.verdict", shown=lambda: not is_doubted()),
                    Later(
                        self._explanation,
                        shown=lambda: self._why.isChecked() and bool(m.benchmark.results),
                    ),
                    label="Why?", name="why",
                    note=Words(lambda: m.verdict, name="verdict", shown=is_doubted),
                ),
                shown=lambda: bool(m.benchmark.runs),
            ),
            Own(
                lambda: BenchmarkResults(m, self.theme, self._export.copies),
                lambda it: it.show_sheet(), shown=lambda: bool(m.benchmark.runs),
            ),
            Words(lambda: m.facts, role="muted", name="details"),
        )  # fmt: skip

    def _explanation(self) -> Sequence[Part]:
        m = self.model
        return (
            Words(lambda: m.explained.caption, role="muted", name="explanation.run"),
            Box(
                Words("Two stopwatches", role="title"),
                Bars("The measured time and the naive time", lambda: m.explained.naive,
                     name="naive.bars"),
                Words(lambda: m.explained.naive_sentence, name="naive.sentence"),
                name="naive",
            ),
            Box(
                Words("Time breakdown", role="title"),
                Bars("Parts of one call", lambda: m.explained.parts, name="parts.bars"),
                Words(lambda: m.explained.parts_sentence, name="parts.sentence"),
                Rows(
                    "Parts of one call", ("Device", "Part", "Time", "Share"),
                    lambda: m.explained.part_rows, numbers=(2, 3), name="parts.table",
                    shown=lambda: m.explained.part_rows,
                ),
                name="parts",
            ),
            Box(
                Words("Is this normal?", role="title"),
                Bars("Share of the device's peak", lambda: m.explained.peaks, full=1,
                     name="ceiling.bars"),
                Words(lambda: m.explained.peak_sentence, name="ceiling.sentence"),
                name="ceiling",
            ),
            Box(
                Words("Findings", role="title"),
                Words(lambda: m.explained.findings, name="findings.text"),
                Later(
                    lambda: (
                        Own(
                            lambda: LossPlot(self.theme, name="benchmark.findings.plot"),
                            lambda plot: plot.show_losses(m.explained.curves),
                        ),
                    ),
                    shown=lambda: m.explained.curves,
                ),
                name="findings",
            ),
        )  # fmt: skip

    def _show_time(self, plot: LiveView) -> None:
        if self.plot is plot:
            plot.show_runs(self.model.selected, self.model.overlay)

    def _show_sizes(self, plot: SizeView) -> None:
        if self.plot is plot:
            plot.show_results(self.model.selected)

    @property
    def plot(self) -> LiveView | SizeView:
        """The plot in front."""
        return self._live if self.model.choices.view == "time" else self._sizes

    @property
    def caption(self) -> str:
        """What the plot in front shows."""
        return self.plot.caption_of(self.model.selected)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let Esc show the runs of all devices again."""
        if event.key() == Qt.Key.Key_Escape and self.model.selected is not None:
            self.model.select(None)
        else:
            super().keyPressEvent(event)
