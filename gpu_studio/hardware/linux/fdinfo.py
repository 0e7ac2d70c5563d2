"""The programs on a card, and how busy they keep it, from /proc/PID/fdinfo.

Documentation/gpu/drm-usage-stats.rst of Linux has the names. Without root, only your own programs
say it.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field
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
_SIZE = re.compile(r"(\d{1,18})(?:\s+([KMG])iB)?")
_UNITS = {None: 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
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
        proc: the folder of all processes.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        slot: str,
        is_integrated: bool,
        proc: Path = PROC,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slot, self._proc, self._now_s = slot.encode(), proc, now_s
        self._shared = frozenset() if is_integrated else _SHARED_REGIONS
        self._regions = _OWN_REGIONS | (_SHARED_REGIONS if is_integrated else frozenset())
        self._looked_at_s: float | None = None
        self._descriptors: list[tuple[int, str]] = []
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
        if self._looked_at_s is None or now_s - self._looked_at_s >= _LOOK_EVERY_S:
            self._looked_at_s, self._descriptors = now_s, list(self._find())
        before, span_s = self._clients, now_s - self._read_at_s
        self._clients = {}
        # One of another card is not read again until the descriptors are looked for again.
        self._descriptors = [one for one in self._descriptors if self._add(*one)]
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

    def _add(self, pid: int, path: str) -> bool:
        """Add the client of a descriptor; return False if it is one of another card."""
        try:
            with open(path, "rb") as file:
                data = file.read(_LONGEST_BYTES)
        except OSError:
            return False
        if self._slot not in data.lower():
            return False
        values = {
            name: value.strip()
            for name, _, value in (
                line.partition(":") for line in data.decode("utf-8", "replace").splitlines()
            )
            if name.startswith("drm-")
        }
        if values.get("drm-pdev", "").lower().encode() != self._slot:
            return False
        # A descriptor that was passed on or copied is the same client.
        key = values.get("drm-client-id", path)
        if key in self._clients:
            return True
        client = self._clients[key] = _Client(pid=pid)
        for name, value in values.items():
            if name.startswith("drm-engine-capacity-"):
                client.capacity[name.removeprefix("drm-engine-capacity-")] = _size(value) or 1
            elif name.startswith("drm-engine-"):
                client.busy_ns[name.removeprefix("drm-engine-")] = _first_number(value)
            elif name.startswith("drm-total-cycles-"):
                client.total_cycles[name.removeprefix("drm-total-cycles-")] = _first_number(value)
            elif name.startswith("drm-cycles-"):
                client.cycles[name.removeprefix("drm-cycles-")] = _first_number(value)
            elif (memory := _MEMORY.fullmatch(name)) and (size := _size(value)) is not None:
                region = memory[2] if memory[2] in _OWN_REGIONS | _SHARED_REGIONS else ""
                by_word = client.memory.setdefault(region, {})
                by_word[memory[1]] = by_word.get(memory[1], 0) + size
        return True


def _size(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None


def _first_number(text: str) -> int:
    """Return the number before the unit: ``123 ns``."""
    found = re.match(r"\d{1,20}", text)
    return int(found[0]) if found else 0
