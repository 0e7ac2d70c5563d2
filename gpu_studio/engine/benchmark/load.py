"""The load of each device across the runs of this engine: our own, and that of other programs.

A driver's utilization is a mean over up to a second (`nvmlUtilization_t` of nvml.h), for all
programs together. So it says something about others only before our own work begins. Runs that
follow each other without a pause belong to one load, whose first one was preceded by the reading.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import LONGEST_PROGRAM, OtherLoad

if TYPE_CHECKING:
    from threading import Event as Flag

    from gpu_studio.engine.sensor import Sensor

# A device has not cooled down after a shorter pause, and the driver still counts our own work.
_LONGEST_PAUSE_S = 1.0
# A moment of work, or the start of this engine, is over by then.
_AGAIN_AFTER_S = 1.2
_BUSY_PERCENT = 10.0
# At its lowest clocks, a card spends this much of its time on drawing a desktop.
_BUSY_PERCENT_AT_REST = 25.0
_AT_REST_BELOW = 0.5


class DeviceLoad:
    """One device's load."""

    def __init__(self) -> None:
        self.since_s = self._until_s = self._checked_s = -math.inf
        self._of_others: OtherLoad | None = None

    def begin(self) -> float:
        """Record that the device starts work; return the start of its load, by `perf_counter`."""
        now_s = time.perf_counter()
        if now_s - self._until_s > _LONGEST_PAUSE_S:
            self.since_s = now_s
        return self.since_s

    def end(self) -> None:
        """Record that the device has worked until now."""
        self._until_s = time.perf_counter()

    def end_check(self) -> None:
        """Record that results were checked until now, which loads the device only at times."""
        self._checked_s = time.perf_counter()

    def of_others(self, sensor: Sensor, uuid: str, stop: Flag) -> OtherLoad | None:
        """Return what other programs did on a card before our load; None if they left it idle.

        Args:
            sensor: reads the card.
            uuid: the card's.
            stop: ends the wait for a second reading.
        """
        if time.perf_counter() - max(self._until_s, self._checked_s) > _LONGEST_PAUSE_S:
            self._of_others = _busy(sensor, uuid)
            if self._of_others is not None:
                stop.wait(_AGAIN_AFTER_S)
                self._of_others = _busy(sensor, uuid)
        return self._of_others


_loads: dict[str, DeviceLoad] = {}


def load_of(address: str) -> DeviceLoad:
    """Return the load of a device in this process."""
    return _loads.setdefault(address, DeviceLoad())


def _busy(sensor: Sensor, uuid: str) -> OtherLoad | None:
    """Return the load of a busy card; None for an idle one, or if unknown."""
    now, card = sensor.read(uuid, ("utilization_percent", "sm_clock_mhz")), sensor.device(uuid)
    if now is None or now.utilization_percent is None:
        return None
    most_mhz, clock_mhz = card and card.sm_clock_max_mhz, now.sm_clock_mhz
    is_at_rest = most_mhz and clock_mhz is not None and clock_mhz < _AT_REST_BELOW * most_mhz
    if now.utilization_percent <= (_BUSY_PERCENT_AT_REST if is_at_rest else _BUSY_PERCENT):
        return None
    program = sensor.busiest_program(uuid)[:LONGEST_PROGRAM]
    return OtherLoad(percent=now.utilization_percent, program=program)
