"""Windows' performance counters of graphics: load and memory, of each adapter and each process.

They are those of the task manager's page, for any maker; pdh.h has the calls. An instance is named
``pid_42_luid_0x00000000_0x0000d1f2_phys_0_eng_0_engtype_3D``.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import struct
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_studio.hardware.card_reader import AdapterUse
from gpu_studio.hardware.windows.d3dkmt import D3dkmtError, open_adapters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpu_studio.hardware.windows.d3dkmt import KernelAdapter

_LIBRARY = "pdh"
_AS_DOUBLE = 0x200 | 0x8000  # PDH_FMT_DOUBLE, and without an end at 100
_MORE_DATA = 0x800007D2
_CALLS = (
    "PdhOpenQueryW", "PdhAddEnglishCounterW", "PdhCollectQueryData", "PdhCloseQuery",
    "PdhGetFormattedCounterArrayW",
)  # fmt: skip
_VALID = frozenset((0, 1))  # PDH_CSTATUS_VALID_DATA, PDH_CSTATUS_NEW_DATA
_LOAD = r"\GPU Engine(*)\Utilization Percentage"
_OWN, _SHARED = (rf"\GPU Adapter Memory(*)\{kind} Usage" for kind in ("Dedicated", "Shared"))
_OWN_OF_PROCESS, _SHARED_OF_PROCESS = (
    rf"\GPU Process Memory(*)\{kind} Usage" for kind in ("Dedicated", "Shared")
)
_INSTANCE = re.compile(
    r"(?:pid_(?P<pid>\d+)_)?(?P<luid>luid_0x[0-9a-f]{8}_0x[0-9a-f]{8})"
    r"(?:_phys_\d+)?(?:_eng_(?P<engine>\d+))?(?:_engtype_(?P<kind>.*))?",
    re.IGNORECASE,
)
_COMPUTE = ("compute", "cuda")  # CUDA's own until Windows schedules the card's work itself
_DRAWS = ("3d", "graphics")
_LEAST_SPAN_S = 0.5  # all cards of one reading have the same values
_LOOK_AGAIN_S = 5.0
_MOST_NAMES = 1 << 14


# PDH_FMT_COUNTERVALUE_ITEM_W of 64-bit Windows: where the name is, the status, the value.
_ITEM = struct.Struct("=QI4xd")


class _Instance(NamedTuple):
    """A counter's instance: whose, of which adapter, and which engine; -1 for nobody's."""

    pid: int
    luid: str
    engine: str
    kind: str


@lru_cache(_MOST_NAMES)
def _instance_of(name: str) -> _Instance | None:
    found = _INSTANCE.fullmatch(name)
    if found is None:
        return None
    pid, kind = int(found["pid"] or -1), (found["kind"] or "").lower()
    return _Instance(pid, found["luid"].lower(), found["engine"] or "", kind)


class GraphicsCounters:
    """The counters of all adapters; the first `read` begins the time over which load is taken.

    Args:
        library: pdh; None loads it.
        now_s: a monotonic clock.
    """

    def __init__(self, library: Any = None, now_s: Callable[[], float] = time.monotonic) -> None:
        self._library, self._now_s = library, now_s
        self._read_at_s: float | None = None
        self._uses: dict[str, AdapterUse] = {}
        self._counters: dict[str, ctypes.c_void_p] = {}
        self._query = ctypes.c_void_p()
        self._rooms: dict[str, ctypes.Array[ctypes.c_char]] = {}
        self._load_count = -1
        self._tells_apart: dict[str, bool] = {}
        # Idle programs show no engine: what they did before is remembered while they are there.
        self._computed: dict[str, set[int]] = {}
        self._drew: dict[str, set[int]] = {}

    def use_of(self, luid: str) -> AdapterUse:
        """Return what programs do with an adapter; see `KernelAdapter.luid`."""
        now_s = self._now_s()
        if self._read_at_s is None or now_s - self._read_at_s >= _LEAST_SPAN_S:
            self._read_at_s, self._uses = now_s, self._read()
        return self._uses.get(luid) or AdapterUse()

    def close(self) -> None:
        """End the session with Windows; the next reading begins another."""
        if self._query:
            with contextlib.suppress(OSError):
                self._library.PdhCloseQuery(self._query)
        self._query, self._counters, self._read_at_s = ctypes.c_void_p(), {}, None

    def _open(self) -> None:
        try:
            self._library = self._library or ctypes.CDLL(_LIBRARY)
            open_query, add, *_ = [getattr(self._library, name) for name in _CALLS]
            if open_query(None, None, ctypes.byref(self._query)) != 0:
                self._query = ctypes.c_void_p()
                return
            for path in (_LOAD, _OWN, _SHARED, _OWN_OF_PROCESS, _SHARED_OF_PROCESS):
                counter = ctypes.c_void_p()
                if add(self._query, ctypes.c_wchar_p(path), None, ctypes.byref(counter)) == 0:
                    self._counters[path] = counter
        except (AttributeError, OSError):  # not this Windows, or a fault in the library
            return

    def _read(self) -> dict[str, AdapterUse]:
        """Return what programs do with each adapter, by its LUID."""
        if not self._query:
            self._open()
        uses: dict[str, AdapterUse] = {}
        try:
            if not self._counters or self._library.PdhCollectQueryData(self._query) != 0:
                return uses
            self._add_loads(uses)
            self._add_sizes(uses)
        except OSError:  # a fault in the library, which ctypes raises
            return {}
        self._remember(uses)
        return uses

    def _add_loads(self, uses: dict[str, AdapterUse]) -> None:
        items = self._items(_LOAD)
        if len(items) != self._load_count:  # only then, the names of idle engines are read
            self._load_count, self._tells_apart = len(items), {}
            for one, _ in _named(items):
                is_so = _is_compute(one) or self._tells_apart.get(one.luid, False)
                self._tells_apart[one.luid] = is_so
        for luid, is_so in self._tells_apart.items():
            uses[luid] = AdapterUse(tells_apart=is_so, busy_percent={})
        engines: dict[tuple[str, str], float] = {}
        for one, percent in _named(item for item in items if item[2] > 0):
            if one.luid not in uses:  # its driver has started anew
                uses[one.luid], self._load_count = AdapterUse(busy_percent={}), -1
            use, place = uses[one.luid], (one.luid, one.engine)
            engines[place] = engines.get(place, 0.0) + percent
            if one.pid < 0 or use.busy_percent is None:
                continue
            use.busy_percent[one.pid] = max(use.busy_percent.get(one.pid, 0.0), percent)
            if _is_compute(one):
                use.computing.add(one.pid)
            elif one.kind.startswith(_DRAWS):
                use.drawing.add(one.pid)
        for luid, use in uses.items():
            shares = [share for (of, _), share in engines.items() if of == luid]
            use.percent = min(100.0, max(shares, default=0.0))

    def _add_sizes(self, uses: dict[str, AdapterUse]) -> None:
        for path, name in ((_OWN, "own_bytes"), (_SHARED, "shared_bytes")):
            for one, size in _named(self._items(path)):
                if size >= 0:
                    use = uses.setdefault(one.luid, AdapterUse())
                    setattr(use, name, (getattr(use, name) or 0) + int(size))
        for place, path in enumerate((_OWN_OF_PROCESS, _SHARED_OF_PROCESS)):
            items = self._items(path)
            for use in uses.values() if items else ():
                use.processes = use.processes or {}
            for one, size in _named(item for item in items if item[2] > 0):
                use = uses.setdefault(one.luid, AdapterUse(processes={}))
                if one.pid >= 0 and use.processes is not None:
                    sizes = [*use.processes.get(one.pid, (0, 0))]
                    sizes[place] += int(size)
                    use.processes[one.pid] = (sizes[0], sizes[1])

    def _remember(self, uses: dict[str, AdapterUse]) -> None:
        for luid, use in uses.items():
            there = (use.processes or {}).keys() | (use.busy_percent or {}).keys()
            for known, now in ((self._computed, use.computing), (self._drew, use.drawing)):
                now |= known.get(luid, set()) & there
                known[luid] = set(now)

    def _items(self, path: str) -> list[tuple[int, int, float]]:
        """Return a counter's instances: where the name is, 0, and the value; none if not said."""
        counter = self._counters.get(path)
        if counter is None:
            return []
        size_bytes, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        get = self._library.PdhGetFormattedCounterArrayW
        ends = (ctypes.byref(size_bytes), ctypes.byref(count))
        if get(counter, _AS_DOUBLE, *ends, None) & 0xFFFFFFFF != _MORE_DATA:
            return []
        self._rooms[path] = room = ctypes.create_string_buffer(size_bytes.value)  # has the names
        if get(counter, _AS_DOUBLE, *ends, room) != 0:
            return []
        items = memoryview(room)[: count.value * _ITEM.size]
        return [item for item in _ITEM.iter_unpack(items) if item[0] and item[1] in _VALID]


def _named(items: Iterable[tuple[int, int, float]]) -> Iterator[tuple[_Instance, float]]:
    for name, _, value in items:
        one = _instance_of(ctypes.wstring_at(name))
        if one is not None:
            yield one, value


def _is_compute(one: _Instance) -> bool:
    return any(word in one.kind for word in _COMPUTE)


COUNTERS = GraphicsCounters()
"""One session for all cards of all makers."""


class SlotUse:
    """What programs do with the card in a slot, of which only its own driver knows more.

    Windows' graphics kernel joins the two names of a card: its slot, and its LUID, which is another
    one after each start of the driver.

    Args:
        open_all: opens the kernel's adapters.
        counters: load and memory of all adapters.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        open_all: Callable[[], Sequence[KernelAdapter]] = open_adapters,
        counters: GraphicsCounters = COUNTERS,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_all, self._counters, self._now_s = open_all, counters, now_s
        self._luids: dict[str, str] = {}
        self._looked_at_s = -_LOOK_AGAIN_S

    def at(self, slot: str) -> AdapterUse | None:
        """Return what programs do with a card; None if Windows does not draw with it (TCC).

        Args:
            slot: as in `DisplayAdapter.pci_bus_id`.
        """
        use = self._now(slot)
        if use is not None and use.processes:
            return use
        if self._now_s() - self._looked_at_s < _LOOK_AGAIN_S:
            return use
        self._looked_at_s = self._now_s()
        try:
            opened = self._open_all()
        except D3dkmtError:
            return use
        self._luids = {one.slot: one.luid for one in opened if one.slot and not one.is_software}
        for one in opened:
            one.close()
        return self._now(slot)

    def _now(self, slot: str) -> AdapterUse | None:
        return self._counters.use_of(self._luids[slot]) if slot in self._luids else None
