"""Write the frames of a run into a file that the window reads; see `core.race.frame_file`.

It lies in a folder of its own, which the next start removes if this process was killed
(`family_folder`). The file is written with ordinary writes: a memory-mapped file would save one
copy, but a full disk would then end the engine with a bus error.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.race.frame_file import capacity_of, header_of, offset_of
from gpu_studio.process.family_folder import FamilyFolder

if TYPE_CHECKING:
    from numpy.typing import NDArray

PERIOD_S = 1 / 20
_log = logging.getLogger(__name__)


class FrameFile:
    """A new file for the frames of one run.

    Args:
        width: of every frame, in pixels.
        height: of every frame, in pixels.

    Raises:
        OSError: the system's temporary folder cannot be written to.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._folder = FamilyFolder()
        self.path = self._folder.path / "frames"
        self._written = 0
        try:
            self._file = self.path.open("xb", buffering=0)
        except OSError:
            self._folder.close()
            raise
        try:
            self._file.write(header_of(width, height))
        except OSError:
            self.close()
            raise

    @property
    def capacity(self) -> int:
        """How many frames fit."""
        return capacity_of(self.width, self.height)

    def add(self, pixels: NDArray[np.uint8]) -> int | None:
        """Write a frame, shape (height, width, 3); return its number, None if it did not fit."""
        number = self._written
        if number >= self.capacity:
            return None
        try:
            self._file.seek(offset_of(number, self.width, self.height))
            self._file.write(np.ascontiguousarray(pixels).data)
        except (OSError, ValueError) as error:  # a full disk, or closed by another thread
            _log.warning("A frame could not be written: %s", error)
            return None
        self._written += 1
        return number

    def close(self) -> None:
        """Close and remove the file."""
        self._file.close()
        self._folder.close()


class FrameFiles:
    """The files of an engine: one at a time, kept until the next run that shows frames.

    The window may still copy the last frames when the run is over.
    """

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._current: FrameFile | None = None
        self._is_closed = False

    def open(self, width: int, height: int) -> FrameFile | None:
        """Return a new file, and remove the one before; None if there can be none."""
        with self._changing:
            self._remove()
            if self._is_closed:
                return None
            try:
                self._current = FrameFile(width, height)
            except OSError as error:
                _log.warning("There is no place for frames: %s", error)
            return self._current

    def close(self) -> None:
        """Remove the last file; no other is made. Thread safe."""
        with self._changing:
            self._is_closed = True
            self._remove()

    def _remove(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            current.close()
