"""The hot spot and the memory's temperature of NVIDIA cards, as far as they can be believed.

They come through undocumented calls (`nvapi`), so everything about them is doubted here: a call
that crashes or hangs is never made again, and a temperature that does not fit is None.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.hardware.display_adapters import display_adapters
from gpu_studio.hardware.nvidia.nvapi import ChannelReading, Nvapi, is_installed, open_nvapi
from gpu_studio.hardware.watchdog import SilentError, Watchdog
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Telemetry

VENDOR_ID = 0x10DE
_PROOF = "gpu_studio.hardware.nvidia.nvapi"
_SUBJECT = "NVAPI"
# Starting a Python takes seconds on a slow and busy PC; a call takes under a millisecond.
_PROOF_PATIENCE_S, _CALL_PATIENCE_S = 5.0, 1.5
_LOWEST_C, _HIGHEST_C = 0.0, 130.0  # a sensor that is not there says 255 or 0
_BELOW_CORE_C = 2.0  # NVML's temperature has whole degrees, and is read a moment earlier
_STUCK_AFTER_S, _LOADED_PERCENT = 60.0, 50.0
# nvmlDeviceArchitecture_t of nvml.h. From Blackwell on, the channel of the hot spot is the core's.
_BLACKWELL = 10


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
    """Adds the believable temperatures of one card to its readings.

    Args:
        nvapi: asked for them.
        bus: the card's bus number; None if unknown: never the number in a list.
        architecture: nvmlDeviceArchitecture_t; None if unknown.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        nvapi: GuardedNvapi,
        bus: int | None,
        architecture: int | None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nvapi, self._bus, self._now_s = nvapi, bus, now_s
        self._has_hot_spot = architecture is None or architecture < _BLACKWELL
        self._hot_spot, self._memory = _StuckWatch(), _StuckWatch()

    def added_to(self, telemetry: Telemetry) -> Telemetry:
        """Return a reading with the hot spot, and with the memory's temperature if it lacks it."""
        if self._bus is None:
            return telemetry
        reading = self._nvapi.read(self._bus)
        is_loaded = (telemetry.utilization_percent or 0.0) >= _LOADED_PERCENT
        now_s = self._now_s()
        hot_spot = self._hot_spot.believed(reading.hotspot_c, now_s, is_loaded=is_loaded)
        core_c = telemetry.temperature_c
        is_below = hot_spot is not None and core_c is not None and hot_spot < core_c - _BELOW_CORE_C
        if is_below or not self._has_hot_spot:
            hot_spot = None
        memory = self._memory.believed(reading.memory_c, now_s, is_loaded=is_loaded)
        return msgspec.structs.replace(
            telemetry,
            hotspot_c=_rounded(hot_spot),
            memory_temperature_c=_rounded(memory)
            if telemetry.memory_temperature_c is None
            else telemetry.memory_temperature_c,
        )


class _StuckWatch:
    """Doubts one temperature: what a sensor cannot say, and what never changes under load."""

    def __init__(self) -> None:
        self._value_c: float | None = None
        self._loaded_since_s: float | None = None
        self._is_stuck = False

    def believed(self, value_c: float | None, now_s: float, *, is_loaded: bool) -> float | None:
        if value_c != self._value_c:
            self._value_c, self._loaded_since_s, self._is_stuck = value_c, None, False
        if not is_loaded:
            self._loaded_since_s = None
        elif self._loaded_since_s is None:
            self._loaded_since_s = now_s
        elif now_s - self._loaded_since_s >= _STUCK_AFTER_S:
            self._is_stuck = True
        if value_c is None or self._is_stuck or not _LOWEST_C < value_c <= _HIGHEST_C:
            return None
        return value_c


def _rounded(value_c: float | None) -> float | None:
    return None if value_c is None else round(value_c, 2)
