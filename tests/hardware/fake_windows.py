"""Stand-ins for gdi32 and pdh: the adapters of a PC, and what the counters say of programs."""

import ctypes
from typing import NamedTuple

from gpu_studio.hardware.windows import counters as counters_module
from gpu_studio.hardware.windows import d3dkmt

REFUSED = -1073741811  # STATUS_INVALID_PARAMETER
GIB = 1 << 30


class FakeAdapter(NamedTuple):
    """One adapter; the usual one is a Radeon RX 6600."""

    low: int = 0xD1F2
    bus: int = 3
    vendor: int = 0x1002
    device: int = 0x73FF
    dedicated: int = 8 * GIB
    shared: int = 12 * GIB
    name: str = "Radeon RX 6600"
    bits: int = 1

    @property
    def luid(self):
        return f"luid_0x00000000_0x{self.low:08x}"

    @property
    def slot(self):
        return f"00000000:{self.bus:02X}:00.0"


class FakeGdi32:
    """The adapters; ``refused`` are the questions that a driver does not answer."""

    def __init__(self, *adapters, refused=(), temperature=615, status=0):
        self.adapters = list(adapters or (FakeAdapter(),))
        self.refused, self.temperature, self.status = refused, temperature, status
        self.open_handles = 0

    def D3DKMTEnumAdapters2(self, argument):
        if self.status:
            return self.status
        adapters = argument._obj
        adapters.count = len(self.adapters)
        for number, one in enumerate(self.adapters):
            adapters.adapters[number].handle = 7 + number
            adapters.adapters[number].luid.low = one.low
            self.open_handles += 1
        return 0

    def D3DKMTCloseAdapter(self, argument):
        assert 7 <= argument._obj.handle < 7 + len(self.adapters)
        self.open_handles -= 1
        return 0

    def D3DKMTQueryAdapterInfo(self, argument):
        question = argument._obj
        if question.kind in self.refused:
            return REFUSED
        one = self.adapters[question.handle - 7]
        values = {
            d3dkmt._SEGMENT_SIZE: (
                d3dkmt.SegmentSize,
                {"dedicated": one.dedicated, "shared": one.shared},
            ),
            d3dkmt._ADDRESS: (d3dkmt._Address, {"bus": one.bus}),
            d3dkmt._TYPE: (d3dkmt._Type, {"bits": one.bits}),
            d3dkmt._REGISTRY: (d3dkmt._Registry, {}),
            d3dkmt._DEVICE_IDS: (d3dkmt._DeviceIds, {"vendor": one.vendor, "device": one.device}),
            d3dkmt._PERFORMANCE: (
                d3dkmt.Performance,
                {"temperature": self.temperature, "fan_rpm": 1200, "memory_hz": 875_000_000},
            ),
            d3dkmt._PERFORMANCE_LIMITS: (d3dkmt.PerformanceLimits, {"fan_max_rpm": 3300}),
        }
        structure, fields = values[question.kind]
        assert question.size_bytes == ctypes.sizeof(structure)
        answer = structure.from_address(question.answer)
        for name, value in fields.items():
            setattr(answer, name, value)
        if question.kind == d3dkmt._REGISTRY:
            for number, letter in enumerate(one.name):
                answer.name[number] = ord(letter)
        return 0


class FakePdh:
    """The instances of each counter, with their values."""

    def __init__(self, values):
        self.values, self.paths = values, []
        self._names = {}  # whose memory the answers point to
        self.open_queries = 0

    def PdhOpenQueryW(self, _source, _data, query):
        query._obj.value = 1
        self.open_queries += 1
        return 0

    def PdhAddEnglishCounterW(self, _query, path, _data, counter):
        self.paths.append(path.value)
        counter._obj.value = len(self.paths)
        return 0

    def PdhCollectQueryData(self, _query):
        return 0

    def PdhCloseQuery(self, _query):
        self.open_queries -= 1
        return 0

    def PdhGetFormattedCounterArrayW(self, counter, _form, size, count, room):
        found = self.values.get(self.paths[counter.value - 1], {})
        count._obj.value = len(found)
        size._obj.value = len(found) * counters_module._ITEM.size
        if room is None:
            return ctypes.c_int32(counters_module._MORE_DATA).value
        items = ctypes.cast(room, ctypes.POINTER(ctypes.c_uint64))
        values = ctypes.cast(room, ctypes.POINTER(ctypes.c_double))
        for number, (name, value) in enumerate(found.items()):
            kept = self._names.setdefault(name, ctypes.create_unicode_buffer(name))
            items[3 * number], items[3 * number + 1] = ctypes.addressof(kept), 0
            values[3 * number + 2] = value
        return 0


def counted(adapter, programs):
    """Return the counters' values for programs on one adapter.

    Args:
        adapter: a `FakeAdapter`.
        programs: the bytes, own and shared, and the load by engine of each, by process id.
    """
    loads, own, shared = {}, {}, {}
    kinds = ("3D", "Copy", "VideoDecode")
    for pid, (own_bytes, shared_bytes, by_engine) in programs.items():
        place = f"pid_{pid}_{adapter.luid}_phys_0"
        for engine, kind in enumerate((*kinds, *(by_engine.keys() - {*kinds}))):
            loads[f"{place}_eng_{engine}_engtype_{kind}"] = float(by_engine.get(kind, 0.0))
        own[place], shared[place] = float(own_bytes), float(shared_bytes)
    return {
        counters_module._LOAD: loads,
        counters_module._OWN_OF_PROCESS: own,
        counters_module._SHARED_OF_PROCESS: shared,
    }
