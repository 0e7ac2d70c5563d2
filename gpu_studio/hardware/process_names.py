"""Find the name and user of a process id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_REMEMBERED = 512


class ProcessNames:
    """The names and users of processes; each is looked up once while it lives.

    Args:
        driver_name: returns the driver's name of a process that the system hides from this user.
    """

    def __init__(self, driver_name: Callable[[int], str | None] = lambda _pid: None) -> None:
        self._driver_name = driver_name
        self._known: dict[int, tuple[psutil.Process, str, str | None]] = {}

    def __call__(self, pid: int) -> tuple[str, str | None]:
        """Return the short name of a process and its user; the user is None if hidden."""
        known = self._known.get(pid)
        if known is not None and known[0].is_running():  # False for another process with this id
            return known[1], known[2]
        try:
            process = psutil.Process(pid)
            name = process.name()
        except (psutil.Error, OSError, ValueError):
            return self._name_from_driver(pid), None
        try:
            # Windows puts the PC's name before the user.
            user = process.username().rsplit("\\", 1)[-1]
        except (psutil.Error, OSError, KeyError):
            user = None
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[pid] = (process, name, user)
        return name, user

    def _name_from_driver(self, pid: int) -> str:
        path = self._driver_name(pid) or ""
        return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] or "unknown"
