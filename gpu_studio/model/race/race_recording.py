"""Records the race that is over, with its pictures or without, for a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.frames import kept_frames
from gpu_studio.model.benchmark.recording import recording_from
from gpu_studio.model.task_queue import TaskQueue

if TYPE_CHECKING:
    from gpu_studio.core.failure import Failure
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.studio import Studio


class RaceRecording(QObject):
    """Makes one recording at a time, in a thread: packing the pictures takes up to seconds.

    Signals:
        changed(): a recording is being recorded, or no longer.
        recorded(bytes): the contents of the file.
        notified(Notice): why there is no recording.
    """

    changed = Signal()
    recorded = Signal(object)
    notified = Signal(object)

    def __init__(self, studio: Studio, race: Race, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._race = studio, race
        self._packing = TaskQueue(self)
        self._packing.failed.connect(self._fail)
        self._packing.idled.connect(self.changed)
        studio.closing.connect(self.close)

    @property
    def is_recording(self) -> bool:
        """Whether a recording is being recorded."""
        return self._packing.is_busy

    def record(self, recorded_at: str, *, keeps_pictures: bool) -> None:
        """Record the runs of this PC; does nothing before the race is over.

        Args:
            recorded_at: the present time in ISO 8601.
            keeps_pictures: whether the recording also shows the pictures.
        """
        if self.is_recording or self._race.verdict is None:
            return
        sides = [side for side in self._race.sides if side.run.recording is None]
        runs, tracks = [side.run for side in sides], [side.track for side in sides]
        studio = self._studio

        def contents() -> bytes:
            frames = kept_frames(runs, tracks) if keeps_pictures else None
            return recording_from(studio, runs, recorded_at, frames)

        # A closed window asks for no file.
        self._packing.add(contents, self.recorded.emit, keeps=False)
        self.changed.emit()

    def close(self) -> None:
        """Wait for the thread: it must not outlive the window."""
        self._packing.close()

    def _fail(self, failure: Failure) -> None:
        self.notified.emit(Notice(failure.message, Tone.FAILURE))
