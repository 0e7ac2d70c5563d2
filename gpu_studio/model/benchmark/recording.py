"""Opens a recording and replays its runs as if they ran now."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.recording import read_recording, recording_sentences
from gpu_studio.core.benchmark.recording_writer import (
    RecordedPc,
    header_of,
    is_recordable,
    recording_of,
    system_name,
)
from gpu_studio.core.device_name import is_cpu, name_at
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_version import program_title
from gpu_studio.core.texts import file_name, listed
from gpu_studio.model.benchmark.benchmark import RunSource
from gpu_studio.model.benchmark.published_experiment import FixedRuns
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.file_reading import FileReading, opening

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.engine import Engine, EngineEnvironment
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio

RECORDING_ENDING = ".jsonl"
OWN_PACE = 1.0
AT_ONCE = math.inf


class RecordingPlayer(QObject):
    """Opens one recording at a time and replays it.

    Signals:
        changed(): another recording is open, or the available actions changed.
        begun(): the replayed runs have begun.
        notified(Notice): the outcome of opening a file.

    Attributes:
        recording: the open recording.
        path: the open file.
    """

    changed = Signal()
    begun = Signal()
    notified = Signal(object)

    def __init__(self, studio: Studio, benchmark: Benchmark, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._benchmark = studio, benchmark
        self.recording: Recording | None = None
        self.path: Path | None = None
        self._asked_path = Path()
        self._speed = OWN_PACE
        self._session = EngineSession(self._engine, self)
        self._reading = FileReading(self)
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self._on_read)
        self._reading.failed.connect(self._fail)
        self._reading.idled.connect(self.changed)
        benchmark.plan_changed.connect(self.changed)
        studio.closing.connect(self.close)

    @property
    def sentences(self) -> list[str]:
        """The open recording in words; empty if none is open."""
        return recording_sentences(self.recording) if self.recording else []

    @property
    def is_reading(self) -> bool:
        """Whether a file is being read."""
        return self._reading.is_reading

    @property
    def can_play(self) -> bool:
        """Whether a recording is open and nothing else runs."""
        is_free = not self._benchmark.state.is_busy and not self.is_reading
        can_replay = self.recording is not None and self._studio.recorded_factory is not None
        return can_replay and is_free

    def open_file(self, path: Path) -> None:
        """Read a recording; the open one stays open until then, or if this one is refused.

        An earlier file is read no further.
        """
        self._asked_path = path
        self._reading.read(lambda is_over: read_recording(path, is_over))
        self.changed.emit()

    def play(self, speed: float = OWN_PACE) -> None:
        """Replay all runs of the open recording, labeled as recorded; does nothing during runs.

        Args:
            speed: a factor of the original speed; `AT_ONCE` never waits.
        """
        recording = self.recording
        if recording is None or not self.can_play:
            return
        self._speed = speed
        self._session.restart()
        names = {run.request.device: run.device_name for run in recording.runs}
        self.begun.emit()
        self._benchmark.start(
            FixedRuns(tuple(run.request for run in recording.runs)),
            RunSource(self._session, recording.label, names),
        )

    def close(self) -> None:
        """Stop replaying and reading; nothing is left running."""
        self._session.close()
        self._reading.close()

    def _engine(self, _environment: EngineEnvironment) -> Engine:
        """Return an engine that replays the open recording."""
        factory = self._studio.recorded_factory
        assert factory is not None
        assert self.recording is not None
        return factory(self.recording, self._speed)

    def _on_delayed(self) -> None:
        self.notified.emit(Notice(opening(self._asked_path)))

    def _on_read(self, recording: Recording) -> None:
        self.path, self.recording = self._asked_path, recording
        self.notified.emit(Notice())

    def _fail(self, failure: Failure) -> None:
        is_expected = failure.kind is not FailureKind.INTERNAL
        what = f"{file_name(self._asked_path)}:" if is_expected else "Could not read the recording:"
        self.notified.emit(Notice(f"{what} {failure.message}", Tone.FAILURE))


def recording_from(
    studio: Studio,
    runs: Sequence[Run],
    recorded_at: str,
    frames: Mapping[str, Sequence[FramesOpened | FrameReady]] | None = None,
) -> bytes:
    """Return the runs of this window as the contents of a recording.

    Args:
        studio: its engine and devices are named in the file.
        runs: replayed runs and runs that never began are left out.
        recorded_at: now, in ISO 8601.
        frames: the frames to keep (`core.race.side.kept_frames`); None leaves all out.

    Raises:
        StudioError: there are no runs to record.
    """
    ours = [run for run in runs if is_recordable(run)]
    pcs = list(dict.fromkeys(studio.pcs.of(run.request.device) for run in ours))
    described = next((pc.session.description for pc in pcs), None)
    found = [(pc.name, pc.sensors.inventory) for pc in pcs]
    known = [(name, inventory) for name, inventory in found if inventory is not None]
    if not ours or described is None or not known:
        reason = (
            "None of these runs was made on this PC. A replayed recording already has its file."
            if not ours
            else "PyTorch and the devices are not known yet."
        )
        raise StudioError(FailureKind.NOT_SAVED, reason)
    cards = [
        name_at(card.pc, run.result.device_name if run.result else card.name)
        for run in ours
        if not is_cpu(run.request.device) and (card := studio.board.at(run.request.device))
    ]
    drivers = dict.fromkeys(one.driver.version for _, one in known if one.driver.version)
    recorded = RecordedPc(
        processor=listed(name_at(name, one.cpu.name) for name, one in known),
        system=listed(dict.fromkeys(pc.doctor.system or system_name() for pc in pcs)),
        cards=tuple(dict.fromkeys(cards)),
        driver_version=listed(drivers) if cards and drivers else None,
        is_simulated=studio.cards_are_simulated and bool(cards),
    )
    header = header_of(recorded, described, recorded_at, program_title())
    return recording_of(header, described, ours, frames)
