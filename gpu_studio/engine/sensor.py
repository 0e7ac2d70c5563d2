"""What a run wants to know of the card it works on. No torch here."""

from __future__ import annotations

from typing import Protocol

import msgspec

# nvmlClocksEventReasons: hardware slowdown, software and hardware thermal, power brake.
_BRAKES = 0x8 | 0x20 | 0x40 | 0x80
_LOWEST_CLOCK_SHARE = 0.75


class CardState(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver says of a card while it works; None is "not told"."""

    clock_event_reasons: int | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    other_processes: bool | None = None


class Sensor(Protocol):
    """Reads a card between batches, never in one."""

    def read(self, uuid: str) -> CardState | None:
        """Return a card's state now, or None where nobody can tell. Never raises."""


class CardWatch:
    """What the sensor said during the timed part, in the words of the result.

    Args:
        sensor: reads the card; None where nobody can.
        uuid: the card; None for the CPU.
    """

    def __init__(self, sensor: Sensor | None, uuid: str | None) -> None:
        self._sensor = sensor
        self._uuid = uuid
        self.throttled: bool | None = None
        self.other_processes: bool | None = None

    def clock_mhz(self) -> float | None:
        """Return the SM clock now, None where it is not told."""
        state = self._read()
        return state.sm_clock_mhz if state else None

    def poll(self) -> None:
        """Read the card once; what was seen once stays."""
        state = self._read()
        if state is None:
            return
        if state.clock_event_reasons is not None:
            self._saw_brake(bool(state.clock_event_reasons & _BRAKES))
        if state.sm_clock_mhz is not None and state.sm_clock_max_mhz:
            share = state.sm_clock_mhz / state.sm_clock_max_mhz
            self._saw_brake(share < _LOWEST_CLOCK_SHARE)
        if state.other_processes is not None:
            self.other_processes = bool(self.other_processes) or state.other_processes

    def _read(self) -> CardState | None:
        return self._sensor.read(self._uuid) if self._sensor and self._uuid else None

    def _saw_brake(self, braked: bool) -> None:
        self.throttled = bool(self.throttled) or braked
