"""Opens what a user names as a file: ordinary files alone, and no more of one than is wanted.

A pipe waits for ever for somebody to write, a device never ends (``/dev/zero``) or does something
when it is opened (a watchdog), and a file may grow while it is read.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CHUNK_BYTES = 1 << 20


class UnusableFileError(Exception):
    """A file that is not opened or not read; the text is the reason: "it is not there"."""


def open_user_file(path: Path) -> BinaryIO:
    """Open an ordinary file for reading; never waits for another program.

    Raises:
        UnusableFileError: it is none, it is not there, or it may not be read.
    """
    try:
        # Looked at before it is opened, since opening a device may do something; and once more
        # when it is open, since another may have taken its place.
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
        raise UnusableFileError("it is not there") from error
    except OSError as error:
        raise UnusableFileError(f"it cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise UnusableFileError("it cannot be read (its name is not possible)") from error


def read_user_file(
    path: Path, most_bytes: int, is_over: Callable[[], bool] = lambda: False
) -> bytes:
    """Return the content of an ordinary file.

    Args:
        path: what a user chose, dropped or typed.
        most_bytes: a larger file is refused, also one that grows while it is read.
        is_over: whether nobody wants the content any more.

    Raises:
        UnusableFileError: as `open_user_file`; or it is too large, or nobody wants it.
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


def _require_ordinary(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnusableFileError("it is a folder, not an ordinary file")
    if not stat.S_ISREG(status.st_mode):
        raise UnusableFileError("it is not an ordinary file")


def _whole(size_bytes: int) -> str:
    return format_bytes(size_bytes).replace("\u202f", " ")
