"""Run and Stop, the progress, and the notices about the current plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.plan import time_left_s
from gpu_studio.core.device_name import CPU
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.run_queue import WorkState
from gpu_studio.ui.eliding import RoomText
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, stops
from gpu_studio.ui.parts import GAP, Text, button, keep_room

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.plan import Plan
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_STEPS = 1000
_LINES = 2


class BenchmarkRunPanel(QWidget):
    """The part above the choices, always as high: nothing below it moves as a run goes on.

    Signals:
        run_wanted(): Run was pressed.

    Attributes:
        buttons: Run and Stop.
        trouble: a warning about the plan, and what to do; for the end of the choices.
    """

    run_wanted = Signal()

    def __init__(
        self, studio: Studio, benchmark: Benchmark, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._studio, self._benchmark = studio, benchmark
        self._plan: Plan | None = None
        self._outcome = Notice()
        self._missing = ""
        self._is_sweep = self._is_bar = False
        self._run = button("Run", self._ask, name="benchmark.run", primary=True)
        self._run.setIcon(icon("play", theme, "on_accent"))
        self._stop = button("Stop", benchmark.stop, name="benchmark.stop")
        self._stop.setIcon(icon("stop", theme))
        stops(self._stop)
        self._progress = QProgressBar()
        self._progress.setObjectName("benchmark.progress")
        self._progress.setAccessibleName("Progress of the plan")
        self._progress.setRange(0, _STEPS)
        self._progress.setTextVisible(False)
        keep_room(self._progress)
        self._sentence = RoomText("", "muted", name="benchmark.progress.text", lines=_LINES)
        self._warning = Text("", "amber", name="benchmark.warning", wraps=True)
        self.last_control = button(
            "Start PyTorch anew", self._start_engine, name="benchmark.fresh_engine"
        )
        self.buttons = QWidget()
        line = QHBoxLayout(self.buttons)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        line.addWidget(self._run, 1)
        line.addWidget(self._stop)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(7)
        column.addWidget(self.buttons)
        column.addWidget(self._progress)
        column.addWidget(self._sentence)
        self.trouble = QWidget()
        below = QVBoxLayout(self.trouble)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(7)
        below.addWidget(self._warning)
        below.addWidget(self.last_control)
        benchmark.plan_changed.connect(self._update)
        studio.session.state_changed.connect(self._update)
        studio.session.engine_described.connect(self._update)
        self._update()

    @property
    def can_run(self) -> bool:
        """Whether a plan can start now."""
        return self._run.isEnabled()

    @property
    def controls(self) -> tuple[QWidget, ...]:
        """The controls in Tab order."""
        return (self._run, self._stop)

    def set_bar(self, is_bar: bool) -> None:
        """Leave the buttons to a bar above, or take them back."""
        self._is_bar = is_bar
        if not is_bar:
            self._column.insertWidget(0, self.buttons)
        # In a bar, the sentence is in one line with what stands beside the panel.
        self._column.insertWidget(-1 if is_bar else 1, self._progress)
        self._update()

    def show_plan(self, plan: Plan, problem: str, *, is_sweep: bool) -> None:
        """Say what Run will do, or why it cannot run yet."""
        if plan != self._plan:
            self._outcome = Notice()  # the estimate of other choices is of interest again
        self._plan, self._missing, self._is_sweep = plan, problem, is_sweep
        self._update()

    def show_outcome(self, notice: Notice) -> None:
        """Show what became of a file before the estimate; an empty notice ends that."""
        self._outcome = notice
        self._update()

    def _ask(self) -> None:
        self.run_wanted.emit()

    def _start_engine(self) -> None:
        self._studio.session.start()

    def _update(self) -> None:
        state = self._benchmark.state
        problem = self._problem()
        self._enable(can_run=not state.is_busy and not problem)
        self._run.setToolTip(problem or "Time every chosen combination")
        runs(self._run)
        self._progress.setValue(round(_STEPS * self._benchmark.progress))
        self._progress.setVisible(state.is_busy)
        self.last_control.setVisible(self._studio.session.state is EngineState.FAILED)
        sentence = self._benchmark.sentence if state.is_busy else self._idle_sentence(problem)
        # The bar hides its text, but screen readers and scripts read it.
        self._progress.setFormat(sentence)
        parts = filter(None, (self._outcome.sentence, sentence))
        self._sentence.setText((" · " if self._is_bar else "\n").join(parts))
        self._sentence.set_tone(self._outcome.tone)
        warning = self._benchmark.warning if state.is_busy else self._bad_notice()
        self._warning.setText(warning)
        self._warning.setVisible(bool(warning))
        self.trouble.setVisible(bool(warning) or self.last_control.isVisibleTo(self.trouble))

    def _enable(self, *, can_run: bool) -> None:
        """Enable Run or Stop; the keyboard focus goes from the disabled one to the other."""
        can_stop = self._benchmark.state is WorkState.RUNNING
        pairs = ((self._run, can_run, self._stop), (self._stop, can_stop, self._run))
        for pressed, can, other in sorted(pairs, key=lambda pair: not pair[1]):
            if not can and pressed.hasFocus() and other.isEnabled():
                other.setFocus()
            pressed.setEnabled(can)

    def _problem(self) -> str:
        session = self._studio.session
        if session.state is EngineState.FAILED:
            return "PyTorch has stopped."
        return session.what_is_missing or self._missing

    def _idle_sentence(self, problem: str) -> str:
        notice = self._benchmark.notice
        planned = problem or self._planned()
        if not notice.sentence or notice.tone is Tone.FAILURE:
            return planned
        between = " " if self._is_bar else "\n"
        return f"{notice.sentence}{between}Next: {planned}"

    def _bad_notice(self) -> str:
        """Return why the last plan ended early, unless the top of the page says it."""
        notice, planned = self._benchmark.notice, self._benchmark.planned
        is_shown_above = not any(run.result is not None for run in planned)
        return notice.sentence if notice.tone is Tone.FAILURE and not is_shown_above else ""

    def _planned(self) -> str:
        plan = self._plan
        if plan is None:
            return ""
        requests = plan.requests()
        count, seconds = len(requests), time_left_s([], requests)
        needs = f"{seconds:.0f}\u202fs" if seconds < 90 else f"{seconds / 60:.0f}\u202fmin"
        planned = (
            f"{count} {'run' if count == 1 else 'runs'}, about {needs}, or more if calls are slow"
        )
        compared = CPU in plan.devices and len(plan.devices) > 1
        finer = "; then closer to the crossover" if self._is_sweep and compared else ""
        return f"{planned}{finer}."
