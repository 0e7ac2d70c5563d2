"""Records what this PC's card answers, in a child process: ``gpu-studio record``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from PySide6.QtCore import QObject

from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.plain_text import file_name
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.model.studio import Studio

_BUSY = "The engine is at work. Make the recording when it has ended: both would be slower."
_SEND = "Send it to us with a new issue on the project's page; it contains no personal names."


class RecordingChild(Protocol):
    """The process that records; `process.child_process.ChildProcess` is one."""

    def lines(self) -> Iterator[bytes]:
        """Yield its lines until it ends."""

    def kill(self) -> None:
        """End it now."""

    def end(self) -> int | None:
        """Wait for its end; return its exit code."""


class _Line(msgspec.Struct, frozen=True):
    """One line of the command's JSON: a step, or the file at the end."""

    step: int = 0
    steps: int = 0
    doing: str = ""
    file: str = ""


_decoder = msgspec.json.Decoder(_Line)


def _start(folder: Path) -> RecordingChild:
    from gpu_studio.process.child_process import ChildProcess  # 4 ms

    arguments = ["record", "--json", "--out", str(folder)]
    return ChildProcess("gpu_studio", arguments, log_path=folder / "log.txt")


class CardRecording(QObject):
    """Makes one recording at a time; the window's own notice says how far it is.

    Args:
        studio: its notices are used, and its engine has to be idle.
        parent: owns it. Without one, its worker would hold the last reference to it, and the
            worker's end would delete both, each by the other.
        start: starts the process that records into a folder.
    """

    def __init__(
        self,
        studio: Studio,
        parent: QObject,
        start: Callable[[Path], RecordingChild] = _start,
    ) -> None:
        super().__init__(parent)
        self._studio, self._start = studio, start
        self._child: RecordingChild | None = None
        self._worker: Worker | None = None
        self._path = Path()
        studio.closing.connect(self.close)

    @property
    def is_recording(self) -> bool:
        return self._worker is not None

    @property
    def can_start(self) -> bool:
        """Whether nothing else is at work; otherwise, a notice says so."""
        is_busy = self._studio.session.state is EngineState.BUSY
        if is_busy:
            self._studio.headlines.notify(_BUSY)
        return not is_busy and not self.is_recording

    def start(self, path: Path) -> None:
        """Record into a file; does nothing while one is being made."""
        if not self.can_start:
            return
        self._path = path
        self._worker = Worker(self._lines, self)
        self._worker.value_produced.connect(self._on_line)
        self._worker.failure_raised.connect(self._on_failure)
        self._worker.finished.connect(self._on_finished)
        self._worker.start()

    def close(self) -> None:
        """End the recording; nothing is left running."""
        if self._child is not None:
            self._child.kill()
        if self._worker is not None:
            self._worker.wait()

    def _lines(self) -> Iterator[_Line]:
        """Yield what the process reports; the file is in its place before the last line."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            self._child = self._start(Path(folder))
            try:
                for line in self._child.lines():
                    reported = _decoder.decode(line)
                    if reported.file:
                        shutil.move(reported.file, self._path)
                    yield reported
                exit_code = self._child.end()
                if exit_code:
                    raise StudioError(FailureKind.NOT_SAVED, self._why(Path(folder)))
            finally:
                self._child = None

    @staticmethod
    def _why(folder: Path) -> str:
        """Return the last line that the process wrote beside its answers."""
        log = folder / "log.txt"
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        last = next(reversed(text.split("\n")[:-1]), "")
        return last.removeprefix("gpu-studio: ") or "The recording ended early."

    def _on_line(self, line: _Line) -> None:
        headlines = self._studio.headlines
        if line.file:
            headlines.notify(f"The recording is in {file_name(self._path)}.", _SEND)
        else:
            headlines.notify(f"Recording, step {line.step} of {line.steps}: {line.doing}.")

    def _on_failure(self, failure: Failure) -> None:
        self._studio.headlines.notify(f"Could not make the recording: {failure.message}")

    def _on_finished(self) -> None:
        if self._worker is not None:
            self._worker.deleteLater()
            self._worker = None
