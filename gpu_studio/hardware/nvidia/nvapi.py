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
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gpu_studio.hardware.display_adapters import display_adapters
from gpu_studio.hardware.pci import I32, U8, U32, fields
from gpu_studio.hardware.watchdog import SilentError, Watchdog
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.telemetry import Telemetry

    Function = Callable[..., int]
    Query = Callable[[int], "Function | None"]

INITIALIZE, UNLOAD = 0x0150E828, 0xD22BDD7E
ENUM_PHYSICAL_GPUS, GET_BUS_ID = 0xE5AC921F, 0x1BE0B8E5
CHANNEL_INFO, CHANNEL_STATUS = 0x0BC8163D, 0x65FE3AAD
OK = 0
MOST_CARDS, CHANNELS = 64, 32
_CHANNEL_BYTES = 84
# The types of a channel, which are indices of `ChannelInfo.primary`.
CORE, HOT_SPOT, MEMORY, _TYPES = 0, 1, 3, 5
_PER_DEGREE = 256
_VERSION = 2
_LIBRARY = "libnvidia-api.so.1"
_WINDOWS_LIBRARY = "nvapi64.dll"
_FROM_SYSTEM32 = 0x800  # LOAD_LIBRARY_SEARCH_SYSTEM32: a file beside the program is not loaded


class ChannelInfo(ctypes.Structure):
    """Which channels a card has, and the primary one of each type: 2736 bytes."""

    _fields_ = fields(
        ("version mask", U32),
        ("reserved", U8 * 32),
        ("channels", U8 * (_CHANNEL_BYTES * CHANNELS)),
        ("primary", U8 * _TYPES),
    )


class ChannelStatus(ctypes.Structure):
    """The temperature of each channel in 1/256 °C: 168 bytes."""

    _fields_ = fields(("version mask", U32), ("reserved", U8 * 32), ("values", I32 * CHANNELS))


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
    return Nvapi(_query_of(_library()))


def is_installed() -> bool:
    """Return whether the library is there; nothing of it is called."""
    try:
        _library()
    except OSError:
        return False
    return True


def _library() -> ctypes.CDLL:
    if sys.platform == "win32":
        return ctypes.CDLL(_WINDOWS_LIBRARY, winmode=_FROM_SYSTEM32)
    else:  # noqa: RET505  # mypy reads one of the two
        return ctypes.CDLL(_LIBRARY)


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


VENDOR_ID = 0x10DE
_PROOF = "gpu_studio.hardware.nvidia.nvapi"
_SUBJECT = "NVAPI"
# Starting a Python takes seconds on a slow and busy PC; a call takes under a millisecond.
_PROOF_PATIENCE_S, _CALL_PATIENCE_S = 5.0, 1.5
_LOWEST_C, _HIGHEST_C = 0.0, 130.0  # a sensor that is not there says 255 or 0
_BELOW_CORE_C = 2.0  # NVML's temperature has whole degrees, and is read a moment earlier
_STUCK_AFTER_S, _LOADED_PERCENT = 60.0, 50.0


def is_any_card_asleep() -> bool:
    """Return whether Linux has switched off a card of NVIDIA's; NVAPI would wake it."""
    return any(one.is_asleep for one in display_adapters() if one.vendor_id == VENDOR_ID)


def is_proven() -> bool:
    """Return whether a child has made every call of NVAPI without a crash, a hang or an error."""
    if not is_installed():
        return False
    try:
        child = ChildProcess(_PROOF)
    except OSError:
        return False
    code = child.wait(_PROOF_PATIENCE_S)
    child.end(0.0)
    return code == 0


class GuardedNvapi:
    """NVAPI behind a deadline. What hangs, crashes or fails once is never asked again.

    Any thread may ask. While one waits, the others get no reading.

    Args:
        open_session: opens a session; raises OSError if there is none.
        is_proven: returns whether NVAPI may be used at all, asked once.
        is_any_asleep: returns whether a card is asleep; then no session is opened.
        patience_s: the most seconds for a call.
    """

    def __init__(
        self,
        open_session: Callable[[], Nvapi] = open_nvapi,
        is_proven: Callable[[], bool] = is_proven,
        is_any_asleep: Callable[[], bool] = is_any_card_asleep,
        patience_s: float = _CALL_PATIENCE_S,
    ) -> None:
        self._open_session, self._is_proven = open_session, is_proven
        self._is_any_asleep = is_any_asleep
        self._patience_s = patience_s
        self._watchdog = Watchdog()
        self._lock = threading.Lock()
        self._session: Nvapi | None = None
        self._may_be_used: bool | None = None  # None: not tried yet

    def read(self, bus: int) -> ChannelReading:
        """Return the temperatures of the card with a bus number, as NVAPI has them."""
        if self._may_be_used is False or not self._lock.acquire(blocking=False):
            return ChannelReading()
        try:
            return self._read(bus)
        except (OSError, SilentError):
            self._may_be_used, self._session = False, None
            return ChannelReading()
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the session, so that a card can fall asleep; the next `read` opens another one."""
        with self._lock:
            session, self._session = self._session, None
            if session is None:
                return
            try:
                self._watchdog.call(_SUBJECT, session.close, self._patience_s)
            except SilentError:
                self._may_be_used = False

    def _read(self, bus: int) -> ChannelReading:
        if self._session is None:
            if self._is_any_asleep():
                return ChannelReading()
            if self._may_be_used is None:
                self._may_be_used = self._is_proven()
            if not self._may_be_used:
                return ChannelReading()
            self._session = self._watchdog.call(_SUBJECT, self._open_session, self._patience_s)
        session = self._session
        return self._watchdog.call(_SUBJECT, lambda: session.read(bus), self._patience_s)


class CardHeat:
    """Adds the believable temperatures of NVAPI to one card's readings.

    Args:
        has_hot_spot: whether the card's channel of the hot spot is one.
    """

    def __init__(self, *, has_hot_spot: bool) -> None:
        self._has_hot_spot = has_hot_spot
        self._hot_spot, self._memory = _StuckWatch(), _StuckWatch()

    def added_to(self, now: Telemetry, reading: ChannelReading, now_s: float) -> Telemetry:
        """Return NVML's reading with the hot spot, and with a temperature of the memory it lacks.

        Args:
            now: what NVML says.
            reading: what NVAPI says, of which only what can be true is taken.
            now_s: a monotonic clock.
        """
        is_loaded = (now.utilization_percent or 0.0) >= _LOADED_PERCENT
        hot_spot = self._hot_spot.believed(reading.hotspot_c, now_s, is_loaded=is_loaded)
        core_c = now.temperature_c
        if hot_spot is not None and core_c is not None and hot_spot < core_c - _BELOW_CORE_C:
            hot_spot = None
        memory = self._memory.believed(reading.memory_c, now_s, is_loaded=is_loaded)
        told = now.memory_temperature_c
        return msgspec.structs.replace(
            now,
            hotspot_c=hot_spot if self._has_hot_spot else None,
            memory_temperature_c=memory if told is None else told,
        )


class _StuckWatch:
    """Doubts one temperature: what a sensor cannot say, and what never changes under load."""

    def __init__(self) -> None:
        self._value_c: float | None = None
        self._loaded_since_s: float | None = None
        self._is_stuck = False  # until it changes

    def believed(self, value_c: float | None, now_s: float, *, is_loaded: bool) -> float | None:
        if value_c != self._value_c:
            self._value_c, self._loaded_since_s, self._is_stuck = value_c, None, False
        if not is_loaded or self._loaded_since_s is None:
            self._loaded_since_s = now_s if is_loaded else None
        elif now_s - self._loaded_since_s >= _STUCK_AFTER_S:
            self._is_stuck = True
        if value_c is None or self._is_stuck or not _LOWEST_C < value_c <= _HIGHEST_C:
            return None
        return round(value_c, 2)


if __name__ == "__main__":
    sys.exit(main())
