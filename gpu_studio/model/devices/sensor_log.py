"""Logs all sensors to a file: every reading becomes a few lines of CSV."""

from __future__ import annotations

import queue
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core import limits
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.user_file import UnusableFileError, create_user_file
from gpu_studio.model.sensors import LOG
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.devices.devices import Reading
    from gpu_studio.model.sensors import Sensors


class SensorLog(QObject):
    """Writes readings on a separate thread: a full or slow disk never blocks the window.

    Signals:
        state_changed(): the log began, wrote a reading or ended.
    """

    state_changed = Signal()

    def __init__(self, sensors: Sensors, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sensors = sensors
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._worker: Worker | None = None
        self._path: Path | None = None
        self._readings = 0
        self._trouble = ""
        sensors.closed.connect(self.close)

    @property
    def is_running(self) -> bool:
        return self._worker is not None

    @property
    def notice(self) -> Notice:
        """The progress or the end of the log; empty before the first log."""
        if self._path is None:
            return Notice()
        count = f"{self._readings} {'reading' if self._readings == 1 else 'readings'}"
        if self._worker is not None:
            text = f"Writing to {self._path.name}: {count} so far. You can use other tabs."
            return Notice(text)
        if self._trouble:
            text = f"The log ended: {self._trouble} {count} written to {self._path}."
            return Notice(text, Tone.FAILURE)
        return Notice(f"{count} written to {self._path}.")

    def start(self, path: Path) -> None:
        """Start a log in a new file, replacing an existing one; one log at a time."""
        from gpu_studio.core.devices.sensor_history import csv_head  # numpy: 80 ms

        if self._worker is not None:
            return
        lines = self._lines = queue.SimpleQueue()
        lines.put(csv_head())
        self._path, self._readings, self._trouble = path, 0, ""
        self._worker = Worker(lambda: _written(path, lines), self)
        self._worker.value_produced.connect(self._count)
        self._worker.finished.connect(self._finish)
        self._worker.finished.connect(self._worker.deleteLater)
        self._worker.start()
        self._sensors.reading_taken.connect(self._on_reading)
        self._sensors.want(LOG, True)
        self.state_changed.emit()

    def stop(self) -> None:
        """End the log after writing the waiting readings."""
        self._lines.put(None)

    def close(self) -> None:
        """End the log and wait for it: its thread must end before the program."""
        if self._worker is not None:
            self.stop()
            self._worker.wait(limits.current.thread_end_ms)

    def _on_reading(self, reading: Reading) -> None:
        from gpu_studio.core.devices.sensor_history import csv_lines  # numpy: 80 ms

        inventory = self._sensors.inventory
        assert inventory is not None  # it comes before the readings
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self._lines.put(csv_lines(reading, inventory, now))

    def _count(self, outcome: str) -> None:
        if outcome:
            self._trouble = outcome
        else:
            self._readings += 1
        self.state_changed.emit()

    def _finish(self) -> None:
        self._worker = None
        self._sensors.reading_taken.disconnect(self._on_reading)
        self._sensors.want(LOG, False)
        self.state_changed.emit()


def _written(path: Path, lines: queue.SimpleQueue[str | None]) -> Iterator[str]:
    """Write the queued readings; yield ``""`` for each reading, and a sentence for an error."""
    try:
        with create_user_file(path) as file:
            file.write(lines.get() or "")
            for text in iter(lines.get, None):
                file.write(text)
                file.flush()  # a crash of the PC loses one reading at most
                yield ""
    except OSError as error:
        yield f"{error.strerror or 'the file cannot be written'}."
    except UnusableFileError as error:
        yield f"{error}."
