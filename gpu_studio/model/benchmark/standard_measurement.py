"""“Measure this PC”: the standard run in the window, its progress, and its record."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import about_time
from gpu_studio.model.pages import DEVICES
from gpu_studio.model.run_queue import QueueStep, RunQueue, WorkState, step_of
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.benchmark.standard import StandardPlan
    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunWorkload
    from gpu_studio.model.studio import Studio

_UPDATE_MS = 500
_NOTHING = "Nothing was measured."
_STOPPED = "Stopped. The results until then are kept."
_ENDED = "PyTorch ended. The results until then are kept."


class StandardMeasurement(QObject):
    """Makes the standard run of this PC.

    Signals:
        changed(): it began, progressed or ended.

    Attributes:
        run: the newest record of this PC; None if there is none.
        notice: how the last measurement ended, and what became of its record.
    """

    changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._plan: StandardPlan | None = None
        self._running: Run | None = None
        self.run: StandardRun | None = None
        self.notice = Notice()
        self._queue = RunQueue(self)
        self._queue.step_begun.connect(self._begin_step)
        self._queue.event_received.connect(self._receive)
        self._queue.finished.connect(self._finish)
        self._begun = QElapsedTimer()
        self._updating = QTimer(self)
        self._updating.setInterval(_UPDATE_MS)
        self._updating.timeout.connect(self.changed)
        self._files = TaskQueue(self)
        self._files.failed.connect(self._fail)
        studio.closing.connect(self._files.close)

    @property
    def devices(self) -> tuple[str, ...]:
        """The addresses of this PC's usable devices; empty without an engine."""
        if self._studio.session.description is None:
            return ()
        rows = self._studio.board.usable_here
        return tuple(row.address for row in rows if row.address is not None)

    @property
    def state(self) -> WorkState:
        """Whether it measures, or stops."""
        return self._queue.state

    @property
    def progress(self) -> float:
        """How much of the time has passed, 0 to 1."""
        if self._plan is None or not self.state.is_busy:
            return 0.0
        spent_s = self._spent_s
        return min(spent_s / max(spent_s + self._plan.left_s(spent_s), 1e-3), 1.0)

    @property
    def sentence(self) -> str:
        """What it does now and how long that takes; at rest, how long it would take."""
        if self.state is WorkState.STOPPING:
            return "Stopping…"
        if self.state.is_busy:
            return f"{self._work} · {self._plan.left_words(self._spent_s)}" if self._plan else ""
        if not self.devices:
            return ""
        from gpu_studio.core.benchmark.standard import standard_s  # 16 ms, not at the start

        time_words = about_time(standard_s(self.devices))
        return f"The same work as on every other PC, {time_words}. Leave the PC alone meanwhile."

    @property
    def _work(self) -> str:
        """The running work, in words."""
        if self._running is None or self._plan is None:
            return "Starting"
        request = self._running.request
        row = self._studio.board.at(request.device)
        name = row.name if row is not None else request.device
        return f"{self._plan.work_words(request.run_id)} · {name}"

    @property
    def _spent_s(self) -> float:
        return self._begun.elapsed() / 1000

    def start(self) -> None:
        """Measure all usable devices of this PC; does nothing meanwhile, or without an engine."""
        if self.state.is_busy or not self.devices:
            return
        from gpu_studio.core.benchmark.standard import StandardPlan

        self._plan = StandardPlan(self.devices)
        self._running = None
        self.notice = Notice()
        self._begun.start()
        self._updating.start()
        self._studio.wakefulness.need(DEVICES, needed=True)
        self._queue.start(self._next_step, self._studio.session)
        self.changed.emit()

    def stop(self) -> None:
        """Stop; what was measured is kept."""
        if self._queue.stop():
            self.changed.emit()

    def _next_step(self, _runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        """Return the next step; a standard run ends with its engine."""
        ends = last is not None and last.ends_engine
        requests = () if ends or self._plan is None else self._plan.next_requests()
        return step_of([_run(request) for request in requests]) if requests else None

    def _begin_step(self, step: QueueStep) -> None:
        self._running = step.runs[0]
        self.changed.emit()

    def _receive(self, _event: Event, changed: Sequence[Run]) -> None:
        if changed:
            self._running = changed[-1]

    def _finish(self) -> None:
        assert self._plan is not None
        self._updating.stop()
        self._studio.wakefulness.need(DEVICES, needed=False)
        if self._queue.is_stopped:
            self.notice = Notice(_STOPPED)
        elif self._queue.last is not None and self._queue.last.ends_engine:
            self.notice = Notice(_ENDED, Tone.FAILURE)
        studio, runs = self._studio, tuple(self._queue.runs)
        record = partial(
            _recorded, self._plan, runs, studio.sensors.inventory, studio.session.description,
            studio.data_folder,
        )  # fmt: skip
        self._files.add(record, self._show)
        self.changed.emit()

    def _show(self, kept: tuple[StandardRun | None, str]) -> None:
        run, problem = kept
        if run is None:
            problem = f"{self.notice.sentence} {_NOTHING}".strip()
        else:
            self.run = run
        if problem:
            self.notice = Notice(problem, Tone.FAILURE)
        self.changed.emit()

    def _fail(self, failure: Failure) -> None:
        self.notice = Notice(failure.message, Tone.FAILURE)
        self.changed.emit()


def _run(request: RunWorkload) -> Run:
    """Return a run that rests while the window draws."""
    import msgspec

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.benchmark import REST_S

    return Run(msgspec.structs.replace(request, rest_s=REST_S))


def _recorded(
    plan: StandardPlan,
    runs: Sequence[Run],
    inventory: Inventory | None,
    described: EngineDescribed | None,
    folder: Path | None,
) -> tuple[StandardRun | None, str]:
    """Return the record, and why the folder of the results does not have it; empty if it has."""
    from gpu_studio.core.benchmark.recording import system_name
    from gpu_studio.core.benchmark.standard_record import FOLDER_NAME, StandardFolder, record_of

    made = record_of(
        plan, runs, inventory=inventory, described=described,
        made_at=datetime.now(timezone.utc).astimezone().isoformat(timespec="milliseconds"),
        system=system_name(),
    )  # fmt: skip
    kept = StandardFolder(folder / FOLDER_NAME if folder is not None else None)
    return made, kept.keep(made) if made is not None else ""
