"""Reads a file that the user names, within limits, and writes a file whole.

Only an ordinary file is opened, and only up to a maximum size.
A pipe waits forever for a writer. A device may never end (``/dev/zero``) or may act when it is
opened (a watchdog). A file may grow while it is read. And a network drive may answer no call at
all, for which no call has a time limit: so such a call is made in a thread that can be left alone.

What is written is written whole, so that a reader never finds a part of it. Standard library only.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO, Generic, TextIO, TypeVar

from gpu_studio.core import limits
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_Content = TypeVar("_Content")

_CHUNK_BYTES = 1 << 20
_STOPPED = "reading it was stopped"
_LOOK_S = 0.05


class UnusableFileError(Exception):
    """A file that cannot be used; the text is the reason: "it does not exist"."""


class SilentDriveError(UnusableFileError):
    """A file that is not there after 10 s, and about which nothing else is known."""

    def __init__(self) -> None:
        super().__init__("its drive does not answer")


def open_user_file(path: Path) -> BinaryIO:
    """Open an ordinary file for reading; never wait for another program.

    Raises:
        UnusableFileError: the file is not an ordinary file, does not exist, or cannot be read.
    """
    try:
        # Checked before it is opened, because opening a device may trigger an action. Checked again
        # afterwards, because another file may have replaced it.
        _require_ordinary(os.stat(path))
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags)
        try:
            _require_ordinary(os.fstat(descriptor))
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise
    except FileNotFoundError as error:
        raise UnusableFileError("it does not exist") from error
    except OSError as error:
        raise UnusableFileError(f"it cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise UnusableFileError("it cannot be read (its name is invalid)") from error


def read_user_file(
    path: Path, most_bytes: int, is_over: Callable[[], bool] = lambda: False
) -> bytes:
    """Return the content of an ordinary file, from wherever it is.

    Args:
        path: the path that the user chose, dropped or typed.
        most_bytes: a larger file is refused, even if it grows during the reading.
        is_over: returns whether the contents are no longer needed; asked 20 times a second.

    Raises:
        SilentDriveError: its drive has not answered for 10 s.
        UnusableFileError: as `open_user_file`, or the file is too large or no longer needed.
    """
    return _Reading(lambda is_left: read_own_file(path, most_bytes, is_left)).content(is_over)


def read_part(
    path: Path, read: Callable[[BinaryIO], _Content], is_over: Callable[[], bool] = lambda: False
) -> _Content:
    """Return a part of an ordinary file; otherwise as `read_user_file`.

    Args:
        path: the path that the user chose, dropped or typed.
        read: returns the part, or what it says; gets the open file.
        is_over: as for `read_user_file`.
    """

    def part(_is_left: Callable[[], bool]) -> _Content:
        try:
            with open_user_file(path) as file:
                return read(file)
        except OSError as error:
            raise UnusableFileError(f"it cannot be read ({error.strerror or error})") from error

    return _Reading(part).content(is_over)


def read_own_file(
    path: Path, most_bytes: int, is_over: Callable[[], bool] = lambda: False
) -> bytes:
    """Return the content of an ordinary file in this user's own folders; as `read_user_file`.

    It waits as long as the drive does.
    """
    too_large = UnusableFileError(f"it is larger than {_whole(most_bytes)}")
    with open_user_file(path) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise too_large
        content = bytearray()
        try:
            while not is_over():
                chunk = file.read(min(_CHUNK_BYTES, most_bytes + 1 - len(content)))
                content += chunk
                if len(content) > most_bytes:
                    raise too_large
                if not chunk:
                    return bytes(content)
        except OSError as error:
            raise UnusableFileError(f"it cannot be read ({error.strerror or error})") from error
    raise UnusableFileError(_STOPPED)


def read_own_text(path: Path, most_bytes: int) -> str:
    """Return the text of a file as `read_own_file` its content; UTF-8.

    Raises:
        UnusableFileError: as `read_own_file`, or it is no text.
    """
    try:
        return read_own_file(path, most_bytes).decode()
    except UnicodeDecodeError as error:
        raise UnusableFileError("it is not UTF-8 text") from error


def create_user_file(path: Path) -> TextIO:
    """Open an ordinary file for writing UTF-8, new or emptied; never wait for another program.

    Line endings are written as they are.

    Raises:
        UnusableFileError: the path names something that is not an ordinary file.
        OSError: the file cannot be made or written.
    """
    with contextlib.suppress(FileNotFoundError):
        _require_ordinary(os.stat(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    flags |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        _require_ordinary(os.fstat(descriptor))
        return os.fdopen(descriptor, "w", encoding="utf-8", newline="")
    except BaseException:
        os.close(descriptor)
        raise


class _Reading(Generic[_Content]):
    """Reads in a thread that is left alone if a call in it does not return.

    Args:
        read: returns the content; called in the thread, with a function to call at each step, which
            returns whether the content is no longer needed.
    """

    def __init__(self, read: Callable[[Callable[[], bool]], _Content]) -> None:
        self._read = read
        self._content: _Content
        self._error: BaseException | None = None
        self._has_ended, self._is_left = threading.Event(), False
        self._silent_looks = 0

    def content(self, is_over: Callable[[], bool]) -> _Content:
        """Return the content; raise `UnusableFileError` without it."""
        if is_over():
            raise UnusableFileError(_STOPPED)
        threading.Thread(target=self._run, name="file", daemon=True).start()
        while not self._has_ended.wait(_LOOK_S):
            self._silent_looks += 1
            # Counted in looks, not by a clock: while the PC sleeps, no drive has to answer.
            is_silent = self._silent_looks * _LOOK_S > limits.current.disk_silence_s
            if is_silent or is_over():
                self._is_left = True
                raise SilentDriveError if is_silent else UnusableFileError(_STOPPED)
        if self._error is not None:
            raise self._error
        return self._content

    def _run(self) -> None:
        try:
            self._content = self._read(self._step)
        except BaseException as error:  # raised again where the content is wanted
            self._error = error
        self._has_ended.set()

    def _step(self) -> bool:
        self._silent_looks = 0
        return self._is_left


def _require_ordinary(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnusableFileError("it is a folder, not an ordinary file")
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFileError("it is not an ordinary file")


def _whole(size_bytes: int) -> str:
    return format_bytes(size_bytes).replace("\u202f", " ")


_ABANDONED_AFTER_S = 3600.0


def write_atomically(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file so that a reader finds either the old or the new contents, never a part.

    Args:
        path: The file.
        content: Its new contents.
        is_private: Whether other users of this PC may not read it; on Windows, the user's own
            folders see to that.

    Raises:
        OSError: nothing was changed.
    """
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    _remove_abandoned(path)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with open(os.open(part, flags, 0o600 if is_private else 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _remove_abandoned(path: Path) -> None:
    """Remove the parts of writers that were killed; one that still writes has a new part."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.????????.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > _ABANDONED_AFTER_S:
                part.unlink()


def try_lock(descriptor: int) -> bool:
    """Lock an open file, which the system unlocks with its holder's end; return whether it did."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
