"""The tree in which Linux describes the PC: /sys.

A file may be missing, of any size or kind, or vanish while it is read: what is no short text is
None.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping

SYS = Path("/sys")
_LONGEST_BYTES = 4096  # a page: sysfs gives no more for one attribute
_MOST_ENTRIES = 4096
_NUMBER = re.compile(r"[+-]?\d{1,20}")
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class SysTree:
    """The tree. Paths in it are relative to its root, with slashes.

    Args:
        root: the folder that is /sys; tests have another one.
    """

    def __init__(self, root: Path = SYS) -> None:
        self._root = os.path.realpath(root)

    def text(self, path: str) -> str | None:
        """Return a file's text without the white space around it; None if there is none."""
        data = self.data(path)
        if data is None:
            return None
        return plain_text(data.decode("utf-8", errors="replace")).strip() or None

    def lines(self, path: str) -> list[str]:
        """Return a file's lines; none if it cannot be read."""
        return (self.data(path) or b"").decode("utf-8", errors="replace").splitlines()

    def data(self, path: str) -> bytes | None:
        """Return the first bytes of a file; None for what is no file or cannot be read."""
        try:
            descriptor = os.open(os.path.join(self._root, path), _FLAGS)
        except (OSError, ValueError):
            return None
        try:
            # A pipe would be waited for.
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            return os.read(descriptor, _LONGEST_BYTES)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def number(self, path: str, least: int = 0, most: int = 1 << 63) -> int | None:
        """Return a file's whole number; None for anything else, and outside of the limits."""
        found = _NUMBER.fullmatch(self.text(path) or "")
        if found is None:
            return None
        value = int(found[0])
        return value if least <= value <= most else None

    def hexadecimal(self, path: str) -> int | None:
        """Return a file's number that is written as ``0x1002``."""
        try:
            return int(self.text(path) or "", 16)
        except ValueError:
            return None

    def fields(self, path: str) -> Mapping[str, str]:
        """Return the lines of a file like ``uevent``: ``DRIVER=amdgpu``."""
        pairs = (line.partition("=") for line in self.lines(path))
        return {name: plain_text(value).strip() for name, equals, value in pairs if equals}

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, in order; none if it cannot be read."""
        try:
            with os.scandir(os.path.join(self._root, path)) as entries:
                found = [entry.name for entry, _ in zip(entries, range(_MOST_ENTRIES))]  # noqa: B905
        except OSError:
            return []
        return sorted(found, key=_in_order)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(os.path.join(self._root, path))

    def place(self, path: str) -> str:
        """Return the path of a file or folder without links."""
        real = os.path.realpath(os.path.join(self._root, path))
        return os.path.relpath(real, self._root).replace(os.sep, "/")


def _in_order(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts ``card2`` before ``card10``."""
    return [(text, int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", name)]
