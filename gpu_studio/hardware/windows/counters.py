"""Windows' performance counters of graphics: load and memory, of each adapter and each process.

They are those of the task manager's page, for any maker; pdh.h has the calls. An instance is named
``pid_42_luid_0x00000000_0x0000d1f2_phys_0_eng_0_engtype_3D``.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LIBRARY = "pdh"
_AS_DOUBLE = 0x200 | 0x8000  # PDH_FMT_DOUBLE, and without an end at 100
_MORE_DATA = 0x800007D2
_CALLS = (
    "PdhOpenQueryW", "PdhAddEnglishCounterW", "PdhCollectQueryData", "PdhCloseQuery",
    "PdhGetFormattedCounterArrayW",
)  # fmt: skip
_VALID = (0, 1)  # PDH_CSTATUS_VALID_DATA, PDH_CSTATUS_NEW_DATA
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
_COMPUTE = "compute"
_LEAST_SPAN_S = 0.5  # all cards of one reading have the same values


class _Value(ctypes.Structure):
    _fields_ = (("status", ctypes.c_uint32), ("value", ctypes.c_double))


class _Item(ctypes.Structure):
    _fields_ = (("name", ctypes.c_wchar_p), ("value", _Value))


@dataclass(frozen=True, slots=True)
class AdapterUse:
    """What programs do with one adapter; None for what Windows does not say.

    Attributes:
        percent: how busy its busiest engine is.
        own_bytes: the card's own memory in use.
        shared_bytes: the PC's memory in use by it.
        processes: the bytes of each process, by its id: own and shared.
        computing: the processes that compute rather than draw.
        busy_percent: how busy each process keeps the engine that it uses most.
    """

    percent: float | None = None
    own_bytes: int | None = None
    shared_bytes: int | None = None
    processes: Mapping[int, tuple[int, int]] | None = None
    computing: frozenset[int] = frozenset()
    busy_percent: Mapping[int, float] | None = None


class GraphicsCounters:
    """The counters of all adapters; the first `read` begins the time over which load is taken.

    Args:
        library: pdh; None loads it.
        now_s: a monotonic clock.
    """

    def __init__(self, library: Any = None, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._read_at_s: float | None = None
        self._values: dict[str, dict[str, float]] = {}
        self._counters: dict[str, ctypes.c_void_p] = {}
        self._query = ctypes.c_void_p()
        try:
            self._library = ctypes.CDLL(_LIBRARY) if library is None else library
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

    def use_of(self, luid: str) -> AdapterUse:
        """Return what programs do with an adapter; see `KernelAdapter.luid`."""
        self._read()
        engines: dict[str, float] = {}
        computing: set[int] = set()
        busy: dict[int, float] = {}
        for found, percent in self._of(_LOAD, luid):
            engine = found["engine"] or ""
            engines[engine] = engines.get(engine, 0.0) + max(0.0, percent)
            if percent > 0 and found["pid"]:
                pid = int(found["pid"])
                busy[pid] = max(busy.get(pid, 0.0), percent)
                if _COMPUTE in (found["kind"] or "").lower():
                    computing.add(pid)
        own, shared = (self._of_processes(path, luid)
                       for path in (_OWN_OF_PROCESS, _SHARED_OF_PROCESS))  # fmt: skip
        pids = own.keys() | shared.keys()
        is_said = _OWN_OF_PROCESS in self._values or _SHARED_OF_PROCESS in self._values
        return AdapterUse(
            percent=min(100.0, max(engines.values())) if engines else None,
            own_bytes=self._bytes(_OWN, luid),
            shared_bytes=self._bytes(_SHARED, luid),
            processes=(
                {pid: (own.get(pid, 0), shared.get(pid, 0)) for pid in pids} if is_said else None
            ),
            computing=frozenset(computing),
            busy_percent=busy or None,
        )

    def close(self) -> None:
        if self._query:
            with contextlib.suppress(OSError):
                self._library.PdhCloseQuery(self._query)
        self._query, self._counters = ctypes.c_void_p(), {}

    def _of(self, path: str, luid: str) -> list[tuple[re.Match[str], float]]:
        found = [
            (_INSTANCE.fullmatch(name), value) for name, value in self._values.get(path, {}).items()
        ]
        return [(one, value) for one, value in found if one and one["luid"].lower() == luid]

    def _of_processes(self, path: str, luid: str) -> dict[int, int]:
        sizes: dict[int, int] = {}
        for found, value in self._of(path, luid):
            if found["pid"] and value >= 0:
                pid = int(found["pid"])
                sizes[pid] = sizes.get(pid, 0) + int(value)
        return sizes

    def _bytes(self, path: str, luid: str) -> int | None:
        sizes = [int(value) for _, value in self._of(path, luid) if value >= 0]
        return sum(sizes) if sizes else None

    def _read(self) -> None:
        now_s = self._now_s()
        if self._read_at_s is not None and now_s - self._read_at_s < _LEAST_SPAN_S:
            return
        self._read_at_s, self._values = now_s, {}
        try:
            if not self._counters or self._library.PdhCollectQueryData(self._query) != 0:
                return
            arrays = {path: self._array(counter) for path, counter in self._counters.items()}
        except OSError:  # a fault in the library, which ctypes raises
            return
        self._values = {path: array for path, array in arrays.items() if array is not None}

    def _array(self, counter: ctypes.c_void_p) -> dict[str, float] | None:
        """Return the values of all instances of a counter; None if Windows does not say them.

        Several of one name are added up.
        """
        size_bytes, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        get = self._library.PdhGetFormattedCounterArrayW
        ends = (ctypes.byref(size_bytes), ctypes.byref(count))
        if get(counter, _AS_DOUBLE, *ends, None) & 0xFFFFFFFF != _MORE_DATA:
            return None
        room = ctypes.create_string_buffer(size_bytes.value)
        if get(counter, _AS_DOUBLE, *ends, room) != 0:
            return None
        items = ctypes.cast(room, ctypes.POINTER(_Item))
        values: dict[str, float] = {}
        for number in range(count.value):
            item = items[number]
            if item.name and item.value.status in _VALID:
                values[item.name] = values.get(item.name, 0.0) + item.value.value
        return values
