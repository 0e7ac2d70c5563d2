"""A recording that is opened and watched: another engine's runs, replayed as if they were now."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.model.benchmark.benchmark import RunSource
from gpu_studio.model.benchmark.published_experiment import FixedRuns
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.failure import Failure
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio

RECORDING_ENDING = ".jsonl"
OWN_PACE = 1.0
AT_ONCE = math.inf


class RecordingPlayer(QObject):
    """Opens one recording after another, and replays the one that is open.

    Signals:
        changed(): another recording is open, or what can be done now is something else.
        begun(): its runs have begun.
        told(str, bool): what came of opening a file, and whether it went wrong.
    """

    changed = Signal()
    begun = Signal()
    told = Signal(str, bool)

    def __init__(self, studio: Studio, benchmark: Benchmark, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._benchmark = studio, benchmark
        self._recording: Recording | None = None
        self._path: Path | None = None
        self._asked_path = Path()
        self._session: EngineSession | None = None
        self._task: Task | None = None
        self._is_closed = False
        benchmark.plan_changed.connect(self.changed)
        studio.closing.connect(self.close)

    @property
    def recording(self) -> Recording | None:
        """What is open."""
        return self._recording

    @property
    def path(self) -> Path | None:
        """The file that is open."""
        return self._path

    @property
    def sentences(self) -> list[str]:
        """What is open, in words; empty before."""
        from gpu_studio.core.benchmark.recording import recording_sentences

        return recording_sentences(self._recording) if self._recording else []

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._task is not None

    @property
    def can_play(self) -> bool:
        """Whether there is something to play, and nothing else runs."""
        is_free = not self._benchmark.state.is_busy and not self.is_reading
        can_replay = self._recording is not None and self._studio.recorded_factory is not None
        return can_replay and is_free

    def open_file(self, path: Path) -> None:
        """Read a recording; what was open stays open until this one is, and where it is refused.

        Does nothing while another file is being read.
        """
        if self._is_closed or self._task is not None:
            return
        from gpu_studio.core.benchmark.recording import read_recording

        self._asked_path = path
        self._task = Task(lambda: read_recording(path), self)
        self._task.succeeded.connect(self._take)
        self._task.failed.connect(self._fail)
        self._task.finished.connect(self._finish)
        self._task.start()
        self.changed.emit()

    def play(self, speed: float = OWN_PACE) -> None:
        """Replay all runs of what is open, labelled as recorded; does nothing while others run.

        Args:
            speed: how many times faster than it happened; `AT_ONCE` waits for nothing.
        """
        recording, factory = self._recording, self._studio.recorded_factory
        if recording is None or factory is None or not self.can_play:
            return
        self._end_session()
        self._session = EngineSession(lambda _: factory(recording, speed), self)
        names = {run.request.device: run.device_name for run in recording.runs}
        self._session.start()
        self.begun.emit()
        self._benchmark.start(
            FixedRuns(tuple(run.request for run in recording.runs)),
            RunSource(self._session, recording.label, names),
        )

    def close(self) -> None:
        """End what is replayed or read; nothing is left running."""
        self._is_closed = True
        self._end_session()
        if self._task is not None:
            self._task.wait()

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session.deleteLater()
            self._session = None

    def _take(self, recording: Recording) -> None:
        if not self._is_closed:
            self._path, self._recording = self._asked_path, recording
            self.told.emit("", False)

    def _fail(self, failure: Failure) -> None:
        if self._is_closed:
            return
        is_expected = failure.kind is not FailureKind.INTERNAL
        what = f"{self._asked_path.name}:" if is_expected else "The recording could not be read:"
        self.told.emit(f"{what} {failure.message}", True)

    def _finish(self) -> None:
        self._task = None
        if not self._is_closed:
            self.changed.emit()


def recording_from(studio: Studio, runs: Sequence[Run], recorded_at: str) -> bytes:
    """Return runs of this window as the content of a recording.

    Args:
        studio: whose engine and devices it names.
        runs: those that are recordings themselves, or never began, are left out.
        recorded_at: now, in ISO 8601.

    Raises:
        StudioError: there is nothing to record.
    """
    from gpu_studio.core.benchmark.recording import (
        RecordedPc,
        header_of,
        is_recordable,
        recording_of,
        system_name,
    )
    from gpu_studio.core.program_version import program_version

    described, inventory = studio.session.description, studio.sensors.inventory
    ours = [run for run in runs if is_recordable(run)]
    if not ours or described is None or inventory is None:
        reason = (
            "None of these runs was made here: a recording has its file already."
            if not ours
            else "The engine and the devices are not known yet."
        )
        raise StudioError(FailureKind.NOT_SAVED, reason)
    cards = [
        run.result.device_name if run.result else device.name
        for run in ours
        if run.request.device != "cpu" and (device := inventory.find(run.request.device))
    ]
    pc = RecordedPc(
        processor=inventory.cpu.name,
        system=system_name(),
        cards=tuple(dict.fromkeys(cards)),
        driver_version=inventory.driver.version if cards else None,
        is_simulated=studio.cards_are_simulated and bool(cards),
    )
    header = header_of(pc, described, recorded_at, f"GPU Studio {program_version()}")
    return recording_of(header, described, ours)
