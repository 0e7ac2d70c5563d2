"""What the page Compare shows: this PC's newest standard run, and those in files beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.standard_file import FOLDER_NAME, StandardFolder, read_standard
from gpu_studio.core.benchmark.standard_words import MOST_FILES, Side, usual_device
from gpu_studio.core.failure import Failure, StudioError, failure_from
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.texts import file_name
from gpu_studio.model.file_reading import FileReading, opening
from gpu_studio.model.worker import TaskQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gpu_studio.core.benchmark.standard_record import StandardRun
    from gpu_studio.model.studio import Studio

_FULL = f"Up to {MOST_FILES} files can be compared. Remove one first."


class StandardSides(QObject):
    """The sides of the comparison: this PC first if it has a run, then the opened files.

    Signals:
        changed(): other sides.
        notified(Notice): what became of a file.

    Attributes:
        sides: the shown devices.
    """

    changed = Signal()
    notified = Signal(object)

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        folder = studio.data_folder
        self._folder = StandardFolder(folder / FOLDER_NAME if folder is not None else None)
        self.sides: tuple[Side, ...] = ()
        self._waiting: dict[Path, None] = {}
        self._files = TaskQueue(self)
        self._files.failed.connect(self._fail)
        self._reading = FileReading(self)  # a drive that hangs must not hold the folder
        self._reading.delayed.connect(self._on_delayed)
        self._reading.succeeded.connect(self._add)
        self._reading.failed.connect(self._fail)
        studio.closing.connect(self._reading.close)
        studio.closing.connect(self._files.close)

    @property
    def has_own(self) -> bool:
        """Whether this PC has a standard run."""
        return bool(self.sides) and self.sides[0].is_here

    @property
    def is_busy(self) -> bool:
        """Whether files are being read."""
        return self._files.is_busy or self._reading.is_reading

    @property
    def can_add(self) -> bool:
        """Whether there is room for another file."""
        return len(self.sides) - self.has_own < MOST_FILES

    def refresh(self) -> None:
        """Read this PC's newest run again: another window or the terminal may have made one."""
        self._files.add(self._folder.newest, self._show_own, keeps=False)

    def open_files(self, paths: Iterable[Path]) -> None:
        """Add the runs in files; a file that is still being read is not forgotten."""
        self._waiting.update(dict.fromkeys(paths))
        waiting = tuple(self._waiting)
        if waiting:
            self._reading.read(lambda is_over: {path: _read(path, is_over) for path in waiting})

    def remove(self, place: int) -> None:
        """Remove a file's side."""
        self._show(side for number, side in enumerate(self.sides) if number != place)

    def choose(self, place: int, number: int) -> None:
        """Compare another device of a side's run."""
        sides = list(self.sides)
        sides[place] = msgspec.structs.replace(sides[place], number=number)
        self._show(sides)

    def _show_own(self, run: StandardRun | None) -> None:
        own = self.sides[0] if self.has_own else None
        if run is None or (own is not None and own.run == run):
            return
        others = (side for side in self.sides if not side.is_here and side.run != run)
        self._show((Side(run, usual_device(run), is_here=True), *others))

    def _add(self, files: dict[Path, StandardRun | Failure]) -> None:
        refused: list[str] = []
        sides, most = list(self.sides), MOST_FILES + self.has_own
        for path, found in files.items():
            self._waiting.pop(path, None)
            if isinstance(found, Failure):
                refused.append(found.message)
            elif any(side.run == found for side in sides):
                refused.append(f"The run in {file_name(path)} is here already.")
            elif len(sides) >= most:
                refused.append(_FULL)
            else:
                sides.append(Side(found, usual_device(found)))
        if len(sides) > len(self.sides):
            self._show(sides)
        self.notified.emit(Notice(" ".join(dict.fromkeys(refused)), Tone.AMBER))

    def _show(self, sides: Iterable[Side]) -> None:
        self.sides = tuple(sides)
        self.changed.emit()

    def _on_delayed(self) -> None:
        if self._waiting:
            self.notified.emit(Notice(opening(next(iter(self._waiting))), Tone.QUIET))

    def _fail(self, failure: Failure) -> None:
        self._waiting.clear()
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


def _read(path: Path, is_over: Callable[[], bool]) -> StandardRun | Failure:
    try:
        return read_standard(path, is_over)
    except StudioError as error:
        return failure_from(error)
