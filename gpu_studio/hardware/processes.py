"""What the system says of the processes on the cards: whose they are, and how busy they were."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import psutil

from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpu_studio.core.devices.devices import GpuProcess

_MOST_REMEMBERED = 2048
_MEAN_OVER_S = 10.0
_MOST_PARENTS = 12
_HAS_PROC = os.path.isfile("/proc/self/stat")
_START_FIELD = 19  # of /proc/PID/stat after the name in brackets: proc(5)
# What /proc/PID/cgroup has of each engine of containers, and of a service of systemd.
_CONTAINERS = (
    ("Docker", re.compile(r"docker[-/]([0-9a-f]{12})")),
    ("Podman", re.compile(r"libpod-([0-9a-f]{12})")),
    ("container", re.compile(r"(?:cri-containerd-|kubepods.*/)([0-9a-f]{12})")),
    ("LXC", re.compile(r"lxc(?:\.payload)?[./]([\w-]+)")),
    ("snap", re.compile(r"/snap\.([\w-]+)\.")),
    ("Flatpak", re.compile(r"app-flatpak-([\w.-]+?)-\d+\.scope")),
)
_SERVICE = re.compile(r"/system\.slice/(?:.*/)?([\w@.-]+)\.service")
_OF_USER = re.compile(r"/app\.slice/(?!app-)([\w@.-]+)\.service")


@dataclass
class _Known:
    """A process as it was first seen; ``began`` tells it from a later one with its id."""

    began: object
    name: str
    user: str | None
    is_yours: bool | None
    unit: str = ""
    family: tuple[int, ...] = ()
    loads: dict[str, deque[tuple[float, float]]] = field(default_factory=dict)


class ProcessBook:
    """The processes on the cards; each is looked up once while it lives.

    Args:
        driver_name: returns the driver's name of a process that the system hides from this user.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        driver_name: Callable[[int], str | None] = lambda _pid: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._driver_name, self._now_s = driver_name, now_s
        self._known: dict[int, _Known] = {}
        self._me = _user_of(os.getpid())

    def name(self, pid: int) -> str:
        """Return a process's short name; empty if nothing says it."""
        return self._find(pid).name

    def of_card(self, card: str, found: Iterable[GpuProcess]) -> tuple[GpuProcess, ...]:
        """Return the processes on a card with all that is known of them.

        How busy one was is the mean of the last seconds. Its first reading is not in it: that may
        still be the load of an earlier process with its id.

        Args:
            card: the card's identity.
            found: as the driver lists them.
        """
        here = [self._described(card, one) for one in found]
        return tuple(one for one in here if one is not None)

    def _described(self, card: str, one: GpuProcess) -> GpuProcess | None:
        known = self._find(one.pid)
        if known.began is None and sys.platform == "win32" and not psutil.pid_exists(one.pid):
            return None  # Windows' counters still have one that has ended
        busy, over_s = self._busy(known, card, one.busy_percent)
        return msgspec.structs.replace(
            one, name=known.name or one.name, user=known.user, is_yours=known.is_yours,
            unit=known.unit, family=known.family, busy_percent=busy, busy_over_s=over_s,
        )  # fmt: skip

    def _busy(self, known: _Known, card: str, percent: float | None) -> tuple[float | None, float]:
        """Return the mean load, and the seconds over which it was taken."""
        now_s = self._now_s()
        loads = known.loads.setdefault(card, deque())
        while loads and now_s - loads[0][0] > _MEAN_OVER_S:
            loads.popleft()
        if percent is None:
            loads.clear()
            return None, 1.0
        loads.append((now_s, percent if loads else -1.0))
        measured = [(at_s, share) for at_s, share in loads if share >= 0]
        if not measured:
            return None, 1.0
        began_s = loads[0][0]
        mean = sum(share for _, share in measured) / len(measured)
        return mean, max(1.0, now_s - began_s)

    def _find(self, pid: int) -> _Known:
        began = _began(pid)
        known = self._known.get(pid)
        if known is not None and known.began == began:
            return known
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        known = self._known[pid] = self._look_up(pid, began)
        return known

    def _look_up(self, pid: int, began: object) -> _Known:
        try:
            process = psutil.Process(pid)
            name = _printable(process.name())
        except (psutil.Error, OSError, ValueError):
            return _Known(began, self._name_from_driver(pid), None, None)
        user, family = _user_of(pid), _family_of(process)
        is_yours = None if user is None else user == self._me
        # Windows puts the PC's name before the user.
        short = None if user is None else user.rsplit("\\", 1)[-1]
        return _Known(began, name, short, is_yours, _unit_of(pid), family)

    def _name_from_driver(self, pid: int) -> str:
        path = _printable(self._driver_name(pid) or "")
        return path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def _began(pid: int) -> object:
    """Return when a process began, in the system's own form; None if nothing says it."""
    try:
        if _HAS_PROC:
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
                text = file.read()
            return text.rpartition(b")")[2].split(None, _START_FIELD + 1)[_START_FIELD]
        return psutil.Process(pid).create_time()
    except (psutil.Error, OSError, ValueError, IndexError):
        return None


def _user_of(pid: int) -> str | None:
    try:
        return str(psutil.Process(pid).username())
    except (psutil.Error, OSError, KeyError):
        return None


def _family_of(process: psutil.Process) -> tuple[int, ...]:
    found: list[int] = []
    with contextlib.suppress(psutil.Error, OSError):
        for parent in process.parents()[:_MOST_PARENTS]:
            found.append(parent.pid)
    return tuple(found)


def _unit_of(pid: int) -> str:
    """Return the container or the service that a process belongs to; empty if it is in none."""
    if os.name != "posix":
        return ""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            text = _printable(file.read(4096).replace("\n", " "))
    except OSError:
        return ""
    for engine, pattern in _CONTAINERS:
        if found := pattern.search(text):
            return f"{engine} {found[1]}"
    service = _SERVICE.search(text) or _OF_USER.search(text)
    return f"service {service[1]}" if service else ""


def _printable(name: str) -> str:
    """Return a name that every message can hold: Linux allows any bytes in it."""
    return plain_text(name, "\ufffd")
