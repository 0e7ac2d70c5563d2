"""Windows' graphics kernel, asked through gdi32: the adapters and their sensors, of any maker.

d3dkmthk.h of the Windows Driver Kit has the structures and the numbers of the questions. No call
needs an administrator; a driver answers what it supports.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, TypeVar

from gpu_studio.hardware.pci import I32, U8, U32, U64, fields

_LIBRARY = "gdi32"
_CALLS = ("D3DKMTEnumAdapters2", "D3DKMTQueryAdapterInfo", "D3DKMTCloseAdapter")
_MOST_ADAPTERS = 32
_WORDS = 260  # MAX_PATH
# Enumerators of KMTQUERYADAPTERINFOTYPE.
_SEGMENT_SIZE, _ADDRESS, _REGISTRY, _TYPE = 3, 6, 8, 15
_DEVICE_IDS, _PERFORMANCE, _PERFORMANCE_LIMITS = 31, 62, 63
_SOFTWARE = 1 << 2  # a bit of D3DKMT_ADAPTERTYPE: it draws with the processor

_Answer = TypeVar("_Answer", bound=ctypes.Structure)


class _Luid(ctypes.Structure):
    _fields_ = fields(("low", U32), ("high", I32))


class _AdapterInfo(ctypes.Structure):
    _fields_ = fields(("handle", U32), ("luid", _Luid), ("sources", U32), ("moves", I32))


class _Adapters(ctypes.Structure):
    _fields_ = fields(("count", U32), ("adapters", ctypes.POINTER(_AdapterInfo)))


class _Question(ctypes.Structure):
    _fields_ = fields(
        ("handle", U32), ("kind", I32), ("answer", ctypes.c_void_p), ("size_bytes", U32)
    )


class _Handle(ctypes.Structure):
    _fields_ = fields(("handle", U32))


class SegmentSize(ctypes.Structure):
    """The memory of an adapter, in bytes."""

    _fields_ = fields(("dedicated dedicated_system shared", U64))


class _Address(ctypes.Structure):
    _fields_ = fields(("bus device function", U32))


class _Registry(ctypes.Structure):
    _fields_ = fields(("name bios converter chip", ctypes.c_uint16 * _WORDS))


class _Type(ctypes.Structure):
    _fields_ = fields(("bits", U32))


class _DeviceIds(ctypes.Structure):
    _fields_ = fields(("index vendor device subvendor subsystem revision bus_type", U32))


class Performance(ctypes.Structure):
    """The sensors: clocks in Hz, heat in tenths of a degree, power in thousandths of the limit."""

    _fields_ = fields(
        ("index", U32),
        ("memory_hz memory_max_hz memory_overclocked_hz memory_bytes pcie_bytes", U64),
        ("fan_rpm power temperature", U32),
        ("is_on", U8),
    )


class PerformanceLimits(ctypes.Structure):
    """The ends of the sensors' scales; a fan without one is not there."""

    _fields_ = fields(
        ("index", U32),
        ("memory_bytes pcie_bytes", U64),
        ("fan_max_rpm temperature_max temperature_warning", U32),
    )


class D3dkmtError(Exception):
    """Windows' graphics kernel cannot be asked; the text says why."""


class KernelAdapter:
    """One adapter; it is open until `close`.

    Args:
        library: gdi32.
        info: as the kernel lists it.
    """

    def __init__(self, library: Any, info: _AdapterInfo) -> None:
        self._library, self._handle = library, info.handle
        self.luid = f"luid_0x{info.luid.high & 0xFFFFFFFF:08x}_0x{info.luid.low:08x}"
        """The name of the adapter in Windows' performance counters, in lower case."""

    @property
    def is_software(self) -> bool:
        """Whether the processor draws instead of a card."""
        found = self._ask(_TYPE, _Type())
        return found is not None and bool(found.bits & _SOFTWARE)

    @property
    def ids(self) -> tuple[int, int, int] | None:
        """The vendor, the device and the revision on the PCI bus; None if it is not on it."""
        found = self._ask(_DEVICE_IDS, _DeviceIds())
        return None if found is None else (found.vendor, found.device, found.revision)

    @property
    def slot(self) -> str | None:
        """The PCI address as in `DisplayAdapter.pci_bus_id`; None if it is not known."""
        found = self._ask(_ADDRESS, _Address())
        if found is None or max(found.bus, found.device, found.function) > 0xFF:
            return None
        return f"00000000:{found.bus:02X}:{found.device:02X}.{found.function:X}"

    @property
    def name(self) -> str:
        """The name that the driver has for it; empty if it has none."""
        found = self._ask(_REGISTRY, _Registry())
        return "" if found is None else _text(found.name)

    @property
    def bios(self) -> str:
        found = self._ask(_REGISTRY, _Registry())
        return "" if found is None else _text(found.bios)

    def memory(self) -> SegmentSize | None:
        return self._ask(_SEGMENT_SIZE, SegmentSize())

    def performance(self) -> Performance | None:
        return self._ask(_PERFORMANCE, Performance())

    def limits(self) -> PerformanceLimits | None:
        return self._ask(_PERFORMANCE_LIMITS, PerformanceLimits())

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._library.D3DKMTCloseAdapter(ctypes.byref(_Handle(handle=self._handle)))

    def _ask(self, kind: int, answer: _Answer) -> _Answer | None:
        """Return the filled structure; None if the driver does not answer the question."""
        question = _Question(
            handle=self._handle,
            kind=kind,
            answer=ctypes.cast(ctypes.byref(answer), ctypes.c_void_p),
            size_bytes=ctypes.sizeof(answer),
        )
        try:
            status = self._library.D3DKMTQueryAdapterInfo(ctypes.byref(question))
        except OSError:  # a fault in the driver's library, which ctypes raises
            return None
        return answer if status == 0 else None


def open_adapters(library: Any = None) -> list[KernelAdapter]:
    """Return the adapters of the PC, each open.

    Args:
        library: gdi32; None loads it.

    Raises:
        D3dkmtError: this Windows has no such call, or refuses it.
    """
    try:
        gdi32 = ctypes.CDLL(_LIBRARY) if library is None else library
        enumerate_adapters, *_ = [getattr(gdi32, name) for name in _CALLS]
    except (AttributeError, OSError) as error:
        message = "This Windows does not list its graphics adapters for programs."
        raise D3dkmtError(message) from error
    room = (_AdapterInfo * _MOST_ADAPTERS)()
    adapters = _Adapters(
        count=_MOST_ADAPTERS, adapters=ctypes.cast(room, ctypes.POINTER(_AdapterInfo))
    )
    try:
        status = enumerate_adapters(ctypes.byref(adapters))
    except OSError as error:
        message = "Windows failed while it listed its graphics adapters."
        raise D3dkmtError(message) from error
    if status != 0:
        message = f"Windows does not list its graphics adapters: error {status & 0xFFFFFFFF:08x}."
        raise D3dkmtError(message)
    return [KernelAdapter(gdi32, one) for one in room[: adapters.count]]


def _text(units: Any) -> str:
    data = bytes(units)
    return data.decode("utf-16-le", errors="replace").partition("\0")[0].strip()
