"""The tree in which Linux describes the PC: /sys, or a copy of another PC's.

`SYSFS_VARIABLE` names a copy. Its links are followed inside the copy only, so that nothing of this
PC is taken for the other's. A file may be missing, of any size or kind, or vanish while it is read:
what is no short text is None.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSFS_VARIABLE = "GPU_STUDIO_SYSFS"
SYS = Path("/sys")
_LONGEST_BYTES = 4096  # a page: sysfs gives no more for one attribute
_MOST_LINKS = 40  # as the kernel: path_resolution(7)
_MOST_ENTRIES = 4096
_NUMBER = re.compile(r"[+-]?\d{1,20}")
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class SysTree:
    """One tree. Paths in it are relative to its root, with slashes.

    Args:
        root: the folder that is /sys, or a copy of it.
    """

    def __init__(self, root: Path = SYS) -> None:
        self._root = str(root)

    @property
    def root(self) -> Path:
        return Path(self._root)

    @property
    def is_copy(self) -> bool:
        """Whether it describes another PC, or this one at another time."""
        return self._root != str(SYS)

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
        place = self.place(path)
        if place is None:
            return None
        try:
            descriptor = os.open(os.path.join(self._root, place), _FLAGS)
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
        place = self.place(path)
        if place is None:
            return []
        try:
            with os.scandir(os.path.join(self._root, place)) as entries:
                found = [entry.name for entry, _ in zip(entries, range(_MOST_ENTRIES))]  # noqa: B905
        except OSError:
            return []
        return sorted(found, key=_in_order)

    def is_folder(self, path: str) -> bool:
        place = self.place(path)
        return place is not None and os.path.isdir(os.path.join(self._root, place))

    def place(self, path: str) -> str | None:
        """Return the path of a file or folder without links; None if a link leaves the tree.

        A link to ``/sys/…`` is one into this tree.
        """
        ahead, done, links = deque(path.split("/")), list[str](), 0
        while ahead:
            part = ahead.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if not done:
                    return None
                done.pop()
                continue
            try:
                target = os.readlink(os.path.join(self._root, *done, part))
            except (OSError, ValueError):  # no link, or nothing
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                return None
            target = target.replace(os.sep, "/")
            if target.startswith("/"):
                inner = self._inner(target)
                if inner is None:
                    return None
                target, done = inner, []
            ahead.extendleft(reversed(target.split("/")))
        return "/".join(done)

    def _inner(self, target: str) -> str | None:
        for root in (str(SYS), self._root.replace(os.sep, "/")):
            if target.startswith(f"{root}/"):
                return target[len(root) + 1 :]
        return None


def sys_tree(environment: Mapping[str, str] = os.environ) -> SysTree:
    """Return the tree that this process reads: of this PC, or the copy that the variable names.

    A copy may have its /sys as a folder ``sys``.
    """
    named = environment.get(SYSFS_VARIABLE, "")
    if not named:
        return SysTree()
    root = Path(named).absolute()
    inner = root / "sys"
    return SysTree(inner if inner.is_dir() and not (root / "class").is_dir() else root)


def _in_order(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts ``card2`` before ``card10``."""
    return [(text, int(digits or -1)) for text, digits in re.findall(r"(\D*)(\d*)", name)]
