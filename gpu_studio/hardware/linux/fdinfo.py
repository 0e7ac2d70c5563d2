"""The programs on a card, and how busy they keep it, from /proc/PID/fdinfo.

Documentation/gpu/drm-usage-stats.rst of Linux has the names. Without root, only your own programs
say it.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

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
_MEMORY = re.compile(r"drm-(resident|memory|total)-([a-z]+)(\d*)")
_UNITS = {b"KiB": 1 << 10, b"MiB": 1 << 20, b"GiB": 1 << 30}
_MOST_DIGITS = 20
# The longer ones first.
_FIELDS = {
    "capacity": "drm-engine-capacity-", "busy_ns": "drm-engine-",
    "total_cycles": "drm-total-cycles-", "cycles": "drm-cycles-",
}  # fmt: skip
# drm-usage-stats: "memory" is the old word of amdgpu for "resident".
_BEST_FIRST = ("resident", "memory", "total")
# The regions of a card's own memory, and those of the PC's: amdgpu, xe and i915.
_OWN_REGIONS = frozenset({"vram", "local"})
_SHARED_REGIONS = frozenset({"gtt", "system", "stolen"})
_COMPUTE_ENGINES = frozenset({"compute", "ccs"})
_DRAWING_ENGINES = frozenset({"gfx", "render", "rcs"})


@dataclass(kw_only=True)
class _Client:
    """One opening of a card by a process."""

    pid: int
    memory: dict[str, dict[str, int]] = field(default_factory=dict)
    busy_ns: dict[str, int] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    total_cycles: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, name: str, word: str, value: bytes) -> None:
        """Add a field as `_field_of` tells it; one without a number is left out."""
        number = _number(value)
        if number is None:
            return
        if kind == "memory":
            by_word = self.memory.setdefault(name, {})
            by_word[word] = by_word.get(word, 0) + number
        else:
            getattr(self, kind)[name] = number

    def has_used(self, engines: frozenset[str]) -> bool:
        """Return whether it ever worked on one of some engines."""
        return any(self.busy_ns.get(one) or self.cycles.get(one) for one in engines)

    def shares(self, old: _Client, span_s: float) -> dict[str, float]:
        """Return its part of each engine's time since an older reading of it."""
        shares = {}
        for engine, busy_ns in self.busy_ns.items():
            worked_ns = busy_ns - old.busy_ns.get(engine, busy_ns)
            capacity = self.capacity.get(engine) or 1
            shares[engine] = max(0, worked_ns) / (span_s * 1e9 * capacity)
        for engine, cycles in self.cycles.items():
            total = self.total_cycles.get(engine, 0) - old.total_cycles.get(engine, 0)
            worked = cycles - old.cycles.get(engine, cycles)
            shares[engine] = max(0, worked) / total if total > 0 else 0.0
        return shares

    def size(self, regions: frozenset[str]) -> int | None:
        """Return the bytes in some regions, by the best word that the driver has for each."""
        sizes = [
            next(by_word[word] for word in _BEST_FIRST if word in by_word)
            for region, by_word in self.memory.items()
            if region in regions
        ]
        return sum(sizes) if sizes else None


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
            self._clients[key] = client = _Client(pid=pid)
            for name, _, value in fields:
                field_of = _field_of(name)
                if field_of is not None:
                    client.add(*field_of, value)


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


@lru_cache(512)
def _field_of(name: bytes) -> tuple[str, str, str] | None:
    """Return what a field is of: of which kind, of which engine or region, by which word."""
    text = name.decode("ascii", "replace")
    for kind, prefix in _FIELDS.items():
        if text.startswith(prefix):
            return kind, text.removeprefix(prefix), ""
    memory = _MEMORY.fullmatch(text)
    if memory is None or memory[2] not in _OWN_REGIONS | _SHARED_REGIONS:
        return None
    return "memory", memory[2], memory[1]


def _number(value: bytes) -> int | None:
    """Return a number with its unit: ``123 ns``, ``4 KiB``."""
    number, *unit = value.split()[:2] or [b""]
    if not number.isdigit() or len(number) > _MOST_DIGITS:
        return None
    return int(number) * _UNITS.get(unit[0] if unit else b"", 1)
