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
from typing import TYPE_CHECKING

from gpu_studio.hardware.card_reader import processes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.devices.devices import GpuProcess

PROC = Path("/proc")
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


@dataclass(kw_only=True)
class _Client:
    """One opening of a card by a process."""

    pid: int
    memory: dict[str, dict[str, int]] = field(default_factory=dict)
    busy_ns: dict[str, int] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    total_cycles: dict[str, int] = field(default_factory=dict)

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
        self._slot, self._proc, self._now_s = slot, proc, now_s
        self._regions = _OWN_REGIONS | (_SHARED_REGIONS if is_integrated else frozenset())
        self._looked_at_s: float | None = None
        self._descriptors: list[tuple[int, str]] = []
        self._clients: dict[str, _Client] = {}
        self._read_at_s = 0.0
        self._computing: set[int] = set()
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
        for pid, path in self._descriptors:
            self._add(pid, path)
        self._computing |= {
            client.pid
            for client in self._clients.values()
            if any(client.busy_ns.get(engine) or client.cycles.get(engine)
                   for engine in _COMPUTE_ENGINES)
        }  # fmt: skip
        if not self._clients:
            self.percent = None
        elif before:
            self.percent = self._busy(before, span_s)
        self._read_at_s = now_s

    @property
    def memory_bytes(self) -> int | None:
        """How much memory all clients have; None if no client says it."""
        sizes = [client.size(self._regions) for client in self._clients.values()]
        known = [size for size in sizes if size is not None]
        return sum(known) if known else None

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return the processes by their ids; a process may be several clients."""
        sizes: dict[int, int | None] = {}
        for client in self._clients.values():
            size, before = client.size(self._regions), sizes.get(client.pid)
            sizes[client.pid] = before if size is None else size + (before or 0)
        return processes_of(sizes, dict.fromkeys(self._computing, "compute"))

    def _busy(self, before: dict[str, _Client], span_s: float) -> float | None:
        """Return the percentage of the busiest engine; None if no engine says it."""
        shares: dict[str, float] = {}
        for key, client in self._clients.items():
            old = before.get(key)
            if old is None:
                continue
            for engine, busy_ns in client.busy_ns.items():
                worked_ns = busy_ns - old.busy_ns.get(engine, busy_ns)
                capacity = client.capacity.get(engine) or 1
                share = max(0, worked_ns) / (span_s * 1e9 * capacity)
                shares[engine] = shares.get(engine, 0.0) + share
            for engine, cycles in client.cycles.items():
                total = client.total_cycles.get(engine, 0) - old.total_cycles.get(engine, 0)
                worked = cycles - old.cycles.get(engine, cycles)
                share = max(0, worked) / total if total > 0 else 0.0
                shares[engine] = shares.get(engine, 0.0) + share
        return min(100.0, 100 * max(shares.values())) if shares else None

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

    def _add(self, pid: int, path: str) -> None:
        try:
            with open(path, "rb") as file:
                text = file.read(_LONGEST_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        values = {key.strip(): value.strip() for key, value in fields.items()}
        if values.get("drm-pdev", "").lower() != self._slot:
            return
        # A descriptor that was passed on or copied is the same client.
        key = values.get("drm-client-id", path)
        client = self._clients.setdefault(key, _Client(pid=pid))
        if client.pid != pid or client.busy_ns or client.memory:
            return
        for name, value in values.items():
            if (memory := _MEMORY.fullmatch(name)) and (size := _size(value)) is not None:
                region = memory[2] if memory[2] in _OWN_REGIONS | _SHARED_REGIONS else ""
                by_word = client.memory.setdefault(region, {})
                by_word[memory[1]] = by_word.get(memory[1], 0) + size
            elif name.startswith("drm-engine-capacity-"):
                client.capacity[name.removeprefix("drm-engine-capacity-")] = _size(value) or 1
            elif name.startswith("drm-engine-"):
                client.busy_ns[name.removeprefix("drm-engine-")] = _first_number(value)
            elif name.startswith("drm-total-cycles-"):
                client.total_cycles[name.removeprefix("drm-total-cycles-")] = _first_number(value)
            elif name.startswith("drm-cycles-"):
                client.cycles[name.removeprefix("drm-cycles-")] = _first_number(value)


def _size(text: str) -> int | None:
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else None


def _first_number(text: str) -> int:
    """Return the number before the unit: ``123 ns``."""
    found = re.match(r"\d{1,20}", text)
    return int(found[0]) if found else 0
