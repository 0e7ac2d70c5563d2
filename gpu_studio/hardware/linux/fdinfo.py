"""The programs on a card, and how busy they keep it, from /proc/PID/fdinfo.

Documentation/gpu/drm-usage-stats.rst of Linux has the names. Without root, only your own programs
say it.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.hardware.card_reader import processes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpu_studio.core.devices.devices import GpuProcess

PROC = Path("/proc")
NOBODY: Mapping[int, int | None] = MappingProxyType({})
_LOOK_EVERY_S = 5.0  # which descriptors are of a card; the others are most
_DRI = "/dev/dri/"
_LONGEST_BYTES = 8192
_LEAST_SPAN_S = 0.05
_MEMORY = re.compile(r"(resident|memory|total)-([a-z]+)\d*")
_UNITS = {b"KiB": 1 << 10, b"MiB": 1 << 20, b"GiB": 1 << 30}
_MOST_DIGITS = 20
# drm-usage-stats: "memory" is the old word of amdgpu for "resident".
_BEST_FIRST = ("resident", "memory", "total")
# The regions of a card's own memory, and those of the PC's: amdgpu, xe and i915.
_OWN_REGIONS = frozenset({"vram", "local"})
_SHARED_REGIONS = frozenset({"gtt", "system", "stolen"})
_COMPUTE_ENGINES = frozenset({"compute", "ccs"})
_DRAWING_ENGINES = frozenset({"gfx", "render", "rcs"})


class _Client(NamedTuple):
    """One opening of a card by a process: the numbers of its fields, without ``drm-``."""

    pid: int
    values: dict[str, int]

    def has_used(self, engines: frozenset[str]) -> bool:
        """Return whether it ever worked on one of some engines."""
        values = self.values
        return any(values.get(f"engine-{one}") or values.get(f"cycles-{one}") for one in engines)

    def shares(self, old: _Client, span_s: float) -> dict[str, float]:
        """Return its part of each engine's time since an older reading of it."""
        now, before, shares = self.values, old.values, {}
        for name, value in now.items():
            kind, _, engine = name.partition("-")
            worked = max(0, value - before.get(name, value))
            if kind == "cycles":
                total = now.get(f"total-{name}", 0) - before.get(f"total-{name}", 0)
                shares[engine] = worked / total if total > 0 else 0.0
            elif kind == "engine" and not engine.startswith("capacity-"):
                capacity = now.get(f"engine-capacity-{engine}") or 1
                shares[engine] = worked / (span_s * 1e9 * capacity)
        return shares

    def size(self, regions: frozenset[str]) -> int | None:
        """Return the bytes in some regions, by the best word that the driver has for each."""
        sizes: dict[str, dict[str, int]] = {}
        for name, value in self.values.items():
            found = _MEMORY.fullmatch(name)
            if found is not None and found[2] in regions:
                by_word = sizes.setdefault(found[2], {})
                by_word[found[1]] = by_word.get(found[1], 0) + value
        best = (next(one[word] for word in _BEST_FIRST if word in one) for one in sizes.values())
        return sum(best) if sizes else None


class CardClients:
    """The clients of one card.

    Args:
        slot: the card's address as fdinfo has it: ``0000:03:00.0``.
        is_integrated: whether the card's memory is the PC's.
        descriptors: those of all cards.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        slot: str,
        is_integrated: bool,
        descriptors: Descriptors,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slot, self._descriptors, self._now_s = slot.encode(), descriptors, now_s
        self._shared = frozenset() if is_integrated else _SHARED_REGIONS
        self._regions = _OWN_REGIONS | (_SHARED_REGIONS if is_integrated else frozenset())
        self._clients: dict[str, _Client] = {}
        self._read_at_s = 0.0
        self._kinds: dict[int, set[str]] = {}
        self._busy: dict[int, float] | None = None
        self.percent: float | None = None

    def read(self) -> None:
        """Read all clients; ``percent`` is then their part of the time since the last call.

        Calls that follow at once, for the other values of one reading, read nothing.
        """
        now_s = self._now_s()
        if self._clients and now_s - self._read_at_s < _LEAST_SPAN_S:
            return
        before, span_s = self._clients, now_s - self._read_at_s
        self._clients = {}
        for pid, path in self._descriptors.of(self._slot, now_s):
            self._add(pid, path)
        for client in self._clients.values():
            kinds = self._kinds.setdefault(client.pid, set())
            kinds |= {"compute"} if client.has_used(_COMPUTE_ENGINES) else set()
            kinds |= {"graphics"} if client.has_used(_DRAWING_ENGINES) else set()
        there = {client.pid for client in self._clients.values()}
        self._kinds = {pid: kinds for pid, kinds in self._kinds.items() if pid in there}
        self.percent, self._busy = self._loads(before, span_s) if before else (None, None)
        self._read_at_s = now_s

    @property
    def memory_bytes(self) -> int | None:
        """How much memory all clients have; None if no client says it."""
        sizes = [client.size(self._regions) for client in self._clients.values()]
        known = [size for size in sizes if size is not None]
        return sum(known) if known else None

    def processes(self, computing: Mapping[int, int | None] = NOBODY) -> tuple[GpuProcess, ...]:
        """Return the processes by their ids; a process may be several clients.

        Args:
            computing: the memory of the processes to which amdkfd lends the card, also of other
                users'. What they compute is no engine's work here, so their load is not known.
        """
        sizes: dict[int, int | None] = {}
        shared: dict[int, int] = {}
        for client in self._clients.values():
            size, before = client.size(self._regions), sizes.get(client.pid)
            sizes[client.pid] = before if size is None else size + (before or 0)
            shared[client.pid] = shared.get(client.pid, 0) + (client.size(self._shared) or 0)
        kinds = {pid: set(kinds) for pid, kinds in self._kinds.items()}
        for pid, held in computing.items():
            sizes[pid] = max(held or 0, sizes.get(pid) or 0) or None
            kinds.setdefault(pid, set()).add("compute")
        found = processes_of(
            sizes, {pid: " and ".join(sorted(kinds[pid])) for pid in kinds}, self._busy, shared
        )
        return tuple(
            msgspec.structs.replace(one, busy_percent=None) if one.pid in computing else one
            for one in found
        )

    def _loads(
        self, before: dict[str, _Client], span_s: float
    ) -> tuple[float | None, dict[int, float] | None]:
        """Return the percentage of the busiest engine, and that of each process; None if unknown.

        Work for computing that amdkfd gives to the card is not in it.
        """
        engines: dict[str, float] = {}
        busy: dict[int, dict[str, float]] = {}
        for key, client in self._clients.items():
            if key in before:
                own = busy.setdefault(client.pid, {})
                for engine, share in client.shares(before[key], span_s).items():
                    engines[engine] = engines.get(engine, 0.0) + share
                    own[engine] = own.get(engine, 0.0) + share
        if not engines:
            return None, None
        by_pid = {pid: 100 * max(own.values(), default=0.0) for pid, own in busy.items()}
        return min(100.0, 100 * max(engines.values())), by_pid

    def _add(self, pid: int, path: str) -> None:
        """Add the client of a descriptor if it is one of this card."""
        data = _read(path)
        fields = [line.partition(b":") for line in data.split(b"\n") if line.startswith(b"drm-")]
        slot = next((value.strip() for name, _, value in fields if name == b"drm-pdev"), b"")
        self._descriptors.slots[path] = slot = slot.lower()
        if slot != self._slot:
            return
        # A descriptor that was passed on or copied is the same client.
        own = next((value.strip() for name, _, value in fields if name == b"drm-client-id"), b"")
        key = own.decode("ascii", "replace") or path
        if key not in self._clients:
            numbers = {name.decode("ascii", "replace")[4:]: _number(value)
                       for name, _, value in fields}  # fmt: skip
            known = {name: value for name, value in numbers.items() if value is not None}
            self._clients[key] = _Client(pid, known)


class Descriptors:
    """The open descriptors of all cards, which all cards share: most of what is open is none.

    Args:
        proc: the folder of all processes.
    """

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._looked_at_s: float | None = None
        self._all: list[tuple[int, str]] = []
        self.slots: dict[str, bytes] = {}
        """The card of each, once it was read."""

    def of(self, slot: bytes, now_s: float) -> list[tuple[int, str]]:
        """Return those of a card, and those that nobody has read yet.

        Args:
            slot: the card's address as fdinfo has it.
            now_s: the time of a monotonic clock.
        """
        if self._looked_at_s is None or now_s - self._looked_at_s >= _LOOK_EVERY_S:
            self._looked_at_s, self._all = now_s, list(self._find())
            self.slots = {path: self.slots[path] for _, path in self._all if path in self.slots}
        return [one for one in self._all if self.slots.get(one[1], slot) == slot]

    def _find(self) -> Iterator[tuple[int, str]]:
        """Yield the descriptors of a card of all processes that let this user see them."""
        try:
            pids = [int(name) for name in os.listdir(self._proc) if name.isdecimal()]
        except OSError:
            return
        for pid in pids:
            folder = f"{self._proc}/{pid}/fd"
            try:
                names = os.listdir(folder)
            except OSError:  # it has ended, or is another user's
                continue
            for name in names:
                try:
                    is_card = os.readlink(f"{folder}/{name}").startswith(_DRI)
                except OSError:
                    continue
                if is_card:
                    yield pid, f"{self._proc}/{pid}/fdinfo/{name}"


def _read(path: str) -> bytes:
    """Return the beginning of a file; nothing if it is gone. A file object takes as long again."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, _LONGEST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _number(value: bytes) -> int | None:
    """Return a number with its unit: ``123 ns``, ``4 KiB``."""
    number, *unit = value.split()[:2] or [b""]
    if not number.isdigit() or len(number) > _MOST_DIGITS:
        return None
    return int(number) * _UNITS.get(unit[0] if unit else b"", 1)
