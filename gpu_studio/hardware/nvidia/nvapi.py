"""The temperatures that NVML lacks, through NVAPI, which asks for no root and no administrator.

NVAPI comes with the driver: ``libnvidia-api.so.1`` on Linux, ``nvapi64.dll`` in Windows's System32.
It exports one function, ``nvapi_QueryInterface``, which returns the others by number. The numbers
and layouts of the thermal channels are undocumented; LACT, MangoHud, RTSS and others read them the
same way. So any answer that does not fit is no answer.

As a program (``python -m``), it makes every call once: whoever wants to use NVAPI starts it first,
because an undocumented call that crashes or hangs then costs a child.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[..., int]
    Query = Callable[[int], "Function | None"]

INITIALIZE, UNLOAD = 0x0150E828, 0xD22BDD7E
ENUM_PHYSICAL_GPUS, GET_BUS_ID = 0xE5AC921F, 0x1BE0B8E5
CHANNEL_INFO, CHANNEL_STATUS = 0x0BC8163D, 0x65FE3AAD
OK = 0
MOST_CARDS, CHANNELS = 64, 32
# The types of a channel, which are indices of `ChannelInfo.primary`.
CORE, HOT_SPOT, MEMORY, _TYPES = 0, 1, 3, 5
_PER_DEGREE = 256
_VERSION = 2
_LIBRARY = "libnvidia-api.so.1"
_WINDOWS_LIBRARY = "nvapi64.dll"
_FROM_SYSTEM32 = 0x800  # LOAD_LIBRARY_SEARCH_SYSTEM32: a file beside the program is not loaded


class Channel(ctypes.Structure):
    """One sensor of a card, 84 bytes."""

    _fields_ = (
        ("channel_class", ctypes.c_uint32),
        ("channel_type", ctypes.c_uint32),
        ("location", ctypes.c_uint32),
        ("target", ctypes.c_uint32),
        ("scaling", ctypes.c_int32),
        ("software_offset", ctypes.c_int32),
        ("lowest", ctypes.c_int32),
        ("highest", ctypes.c_int32),
        ("has_simulation", ctypes.c_uint8),
        ("flags", ctypes.c_uint8),
        ("hardware_offset", ctypes.c_int32),
        ("reserved", ctypes.c_uint8 * 28),
        ("data", ctypes.c_uint8 * 16),
    )


class ChannelInfo(ctypes.Structure):
    """Which channels a card has, and the primary one of each type: 2736 bytes."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("mask", ctypes.c_uint32),
        ("reserved", ctypes.c_uint8 * 32),
        ("channels", Channel * CHANNELS),
        ("primary", ctypes.c_uint8 * _TYPES),
    )


class ChannelStatus(ctypes.Structure):
    """The temperature of each channel in 1/256 °C: 168 bytes."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("mask", ctypes.c_uint32),
        ("reserved", ctypes.c_uint8 * 32),
        ("values", ctypes.c_int32 * CHANNELS),
    )


class ChannelReading(NamedTuple):
    """What the channels of a card say, in °C, as it comes: None if there is no such channel."""

    hotspot_c: float | None = None
    memory_c: float | None = None


def stamp(kind: type[ctypes.Structure]) -> int:
    """Return the first field of a structure: its size, and its version in the high half."""
    return ctypes.sizeof(kind) | _VERSION << 16


class Nvapi:
    """An open session.

    Args:
        query: returns a function of NVAPI by its number; None if the driver lacks it.

    Raises:
        OSError: the driver lacks a function, or a call failed.
    """

    def __init__(self, query: Query) -> None:
        self._unload = query(UNLOAD)
        self._get_info, self._get_status = query(CHANNEL_INFO), query(CHANNEL_STATUS)
        _call(query(INITIALIZE))
        handles, count = (ctypes.c_void_p * MOST_CARDS)(), ctypes.c_uint32()
        _call(query(ENUM_PHYSICAL_GPUS), handles, ctypes.byref(count))
        if count.value > MOST_CARDS:
            raise OSError
        self._cards: dict[int, int | None] = {}  # None: two cards have this bus number
        get_bus_id = query(GET_BUS_ID)
        for handle in handles[: count.value]:
            bus = ctypes.c_uint32()
            if handle and get_bus_id is not None and _status(get_bus_id, handle, bus) == OK:
                self._cards[bus.value] = None if bus.value in self._cards else handle
        self._infos: dict[int, ChannelInfo | None] = {}

    @property
    def buses(self) -> tuple[int, ...]:
        """The bus numbers of the cards; NVAPI knows no PCI domains."""
        return tuple(bus for bus, handle in self._cards.items() if handle is not None)

    def read(self, bus: int) -> ChannelReading:
        """Return the temperatures of the card with a bus number, as they come."""
        handle = self._cards.get(bus)
        if handle is None or self._get_status is None:
            return ChannelReading()
        if bus not in self._infos:
            self._infos[bus] = self._info(handle)
        info = self._infos[bus]
        if info is None:
            return ChannelReading()
        now = ChannelStatus(version=stamp(ChannelStatus), mask=info.mask)
        if _status(self._get_status, handle, now) != OK or now.version != stamp(ChannelStatus):
            return ChannelReading()
        core = _primary(info, CORE)
        hot_spot, memory = _primary(info, HOT_SPOT), _primary(info, MEMORY)
        return ChannelReading(
            # The core's own channel is no hot spot.
            hotspot_c=None if hot_spot == core else _degrees(now, hot_spot),
            memory_c=_degrees(now, memory),
        )

    def close(self) -> None:
        """End the session."""
        self._cards.clear()
        if self._unload is not None:
            self._unload()

    def _info(self, handle: int) -> ChannelInfo | None:
        info = ChannelInfo(version=stamp(ChannelInfo))
        if self._get_info is None or _status(self._get_info, handle, info) != OK:
            return None
        return info if info.version == stamp(ChannelInfo) and info.mask else None


def open_nvapi() -> Nvapi:
    """Open a session with this PC's library.

    Raises:
        OSError: there is none, or it does not answer.
    """
    if sys.platform == "win32":
        library = ctypes.CDLL(_WINDOWS_LIBRARY, winmode=_FROM_SYSTEM32)
    else:
        library = ctypes.CDLL(_LIBRARY)
    return Nvapi(_query_of(library))


def is_installed() -> bool:
    """Return whether the library is there; nothing of it is called."""
    try:
        if sys.platform == "win32":
            ctypes.CDLL(_WINDOWS_LIBRARY, winmode=_FROM_SYSTEM32)
        else:
            ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def _query_of(library: Any) -> Query:
    try:
        query = library.nvapi_QueryInterface
    except AttributeError as error:
        raise OSError from error
    query.argtypes, query.restype = (ctypes.c_uint32,), ctypes.c_void_p
    # Without argument types: each caller passes pointers and numbers of the right width.
    function_at = ctypes.CFUNCTYPE(ctypes.c_int32)

    def function(number: int) -> Function | None:
        address = query(number)
        return function_at(address) if address else None

    return function


def _call(function: Function | None, *arguments: Any) -> None:
    if function is None or function(*arguments) != OK:
        raise OSError


def _status(function: Function, handle: int, answer: Any) -> int:
    return function(ctypes.c_void_p(handle), ctypes.byref(answer))


def _primary(info: ChannelInfo, channel_type: int) -> int | None:
    """Return the primary channel of a type; None if the card has none."""
    channel = int(info.primary[channel_type])
    return channel if channel < CHANNELS and info.mask >> channel & 1 else None


def _degrees(status: ChannelStatus, channel: int | None) -> float | None:
    return None if channel is None else status.values[channel] / _PER_DEGREE


def main() -> int:
    """Make every call once; return 0 if none failed."""
    try:
        nvapi = open_nvapi()
    except OSError:
        return 1
    for bus in nvapi.buses:
        nvapi.read(bus)
    nvapi.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
