"""Opens a file that the user names: only an ordinary one, and for reading up to a maximum size.

A pipe waits forever for a writer. A device may never end (``/dev/zero``) or may act when it is
opened (a watchdog). And a file may grow while it is read.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, BinaryIO, TextIO

from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CHUNK_BYTES = 1 << 20


class UnusableFileError(Exception):
    """A file that cannot be used; the text is the reason: "it does not exist"."""


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
    """Return the content of an ordinary file.

    Args:
        path: the path that the user chose, dropped or typed.
        most_bytes: a larger file is refused, even if it grows during the reading.
        is_over: returns whether the contents are no longer needed.

    Raises:
        UnusableFileError: as `open_user_file`, or the file is too large or no longer needed.
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
    raise UnusableFileError("reading it was stopped")


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


def _require_ordinary(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnusableFileError("it is a folder, not an ordinary file")
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFileError("it is not an ordinary file")


def _whole(size_bytes: int) -> str:
    return format_bytes(size_bytes).replace("\u202f", " ")
