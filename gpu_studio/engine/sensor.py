"""The sensors that a run reads on its device. No torch here."""

from __future__ import annotations

import contextlib
import math
import os
import time
from statistics import fmean
from typing import TYPE_CHECKING, Protocol

import msgspec
import psutil

from gpu_studio.core.benchmark.sustained import is_first, is_steady
from gpu_studio.core.devices.card_programs import do_others_compute
from gpu_studio.core.messages.run_messages import RunHeat
from gpu_studio.core.statistics import quantile
from gpu_studio.core.telemetry import SENSORS, is_power_capped, is_throttled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from gpu_studio.core.devices.devices import Device, GpuProcess
    from gpu_studio.core.telemetry import Telemetry

# The share of all cores' time, or one core's worth where that is less. An idle desktop stays below;
# a second busy program does not.
_LARGEST_SHARE_OF_OTHERS = 0.10
# The system counts in ticks of 10 ms: a shorter run is too short to detect this.
_SHORTEST_WATCH_S = 0.2
# A driver averages its power and its temperature over about as long.
_HEAT_PERIOD_S = 1.0
# What is read between two batches.
_POLLED = ("clock_event_reasons", "sm_clock_mhz", "pcie_generation", "pcie_width")


class Sensor(Protocol):
    """Reads a device between batches, never during a batch. Its methods never raise.

    ``identity`` is a card's UUID or slot, or ``cpu``.
    """

    def read(self, identity: str, wanted: Collection[str] = SENSORS) -> Telemetry | None:
        """Return the wanted fields of a device's sensors; None if unknown."""

    def device(self, identity: str) -> Device | None:
        """Return a device's facts, which do not change; None if unknown."""

    def cards(self) -> Sequence[Device]:
        """Return the facts of all cards that a driver serves; this may wake them."""

    def processes(self, identity: str) -> tuple[GpuProcess, ...]:
        """Return the processes on a card, without names; empty if unknown."""

    def busiest_program(self, identity: str) -> str:
        """Return the other program that works on a card; empty if unknown."""


class Watch:
    """Observes a device during the timed part; None in a result means "unknown".

    Attributes:
        throttled: whether the device slowed itself down by its state.
        power_capped: whether its limit of power did.
        other_processes: whether other programs worked on it.
        card: a card, with its last reading and the fastest link seen so far.
        clocks_mhz: the SM clock at each poll.
    """

    throttled: bool | None = None
    power_capped: bool | None = None
    other_processes: bool | None = None
    card: Device | None = None
    clocks_mhz: Sequence[float] = ()

    @property
    def power_w(self) -> float | None:
        """The mean of all readings of a card's power; None if unknown."""
        return None

    def clock_mhz(self) -> float | None:
        """Return the device's present clock; the CPU needs none to settle."""
        return None

    def begin(self) -> None:
        """Start of the timed part."""

    def poll(self) -> None:
        """Read once, between two batches."""

    def poll_power(self) -> None:
        """Read the power once; also between batches on another device."""

    def end(self) -> None:
        """End of the timed part."""


class CpuWatch(Watch):
    """Detects whether other programs kept the CPU busy during the timed part.

    If another program holds a core, threads that wait for it make small operations a thousand times
    slower, evenly: the spread of the samples does not show it.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._before = (0.0, 0.0, 0.0)
        self._others_s = self._all_s = 0.0

    def begin(self) -> None:
        """Read the counters."""
        self._before = self._read()

    def end(self) -> None:
        """Compare the counters; the rounds of a run add up."""
        own_s, busy_s, all_s = (
            after - before for after, before in zip(self._read(), self._before, strict=True)
        )
        self._others_s += busy_s - own_s
        self._all_s += all_s
        cores = psutil.cpu_count() or 1
        if self._all_s >= _SHORTEST_WATCH_S * cores:
            share = min(_LARGEST_SHARE_OF_OTHERS, 1 / cores)
            self.other_processes = self._others_s > share * self._all_s

    def _read(self) -> tuple[float, float, float]:
        """Return seconds of core time: of this family, of all processes, and the total."""
        own_s, system = _family_s(self._process), psutil.cpu_times()
        idle_s = system.idle + getattr(system, "iowait", 0.0)
        # Linux counts guest time as user time, too.
        guests_s = getattr(system, "guest", 0.0) + getattr(system, "guest_nice", 0.0)
        all_s = sum(system) - guests_s
        return own_s, all_s - idle_s, all_s


def _family_s(process: psutil.Process) -> float:
    """Return the core time of a process and its children, including ended children.

    Loaders and the processes of a group work for the run. Windows does not report ended
    children.
    """
    family_s = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended: its parent counts it
            spent = one.cpu_times()
            family_s += spent.user + spent.system
            family_s += getattr(spent, "children_user", 0.0)
            family_s += getattr(spent, "children_system", 0.0)
    return family_s


class CardWatch(Watch):
    """The sensor's readings during the timed part, as the result needs them.

    Args:
        sensor: reads the card; None if there is no sensor.
        uuid: the card's UUID; None if it has none.
        reads_power: whether to ask for the power as well. Some drivers hang in that call, so only
            a run that tells its energy asks.
    """

    def __init__(
        self, sensor: Sensor | None, uuid: str | None, *, reads_power: bool = False
    ) -> None:
        self._sensor = sensor
        self._uuid = uuid
        self.clocks_mhz: list[float] = []
        self._reads_power = reads_power
        self._powers_w: list[float] = []

    @property
    def power_w(self) -> float | None:
        """The mean of all readings; None if the card does not report its power."""
        return fmean(self._powers_w) if self._powers_w else None

    def clock_mhz(self) -> float | None:
        """Return the present SM clock; None if unknown."""
        now = self._read(("sm_clock_mhz",))
        return now.sm_clock_mhz if now else None

    def begin(self) -> None:
        """Ask for the card's facts, which takes longer than a reading."""
        if self.card is None and self._sensor and self._uuid:
            self.card = self._sensor.device(self._uuid)

    def poll(self) -> None:
        """Read the card once; a condition seen once stays recorded."""
        now = self._read(_POLLED)
        if now is None or self._sensor is None or self._uuid is None:
            return
        if self.card is not None:
            telemetry = _with_faster_link(now, self.card.telemetry)
            self.card = msgspec.structs.replace(self.card, telemetry=telemetry)
        if now.sm_clock_mhz is not None:
            self.clocks_mhz.append(now.sm_clock_mhz)
        reasons = now.clock_event_reasons
        base_mhz = self.card.sm_clock_base_mhz if self.card else None
        slow = is_throttled(reasons, now.sm_clock_mhz, base_mhz)
        self.throttled = _seen(self.throttled, slow)
        self.power_capped = _seen(self.power_capped, is_power_capped(reasons))
        others = do_others_compute(self._sensor.processes(self._uuid), os.getpid())
        self.other_processes = _seen(self.other_processes, others)

    def poll_power(self) -> None:
        """Read the power once, if this run tells its energy."""
        now = self._read(("power_w",)) if self._reads_power else None
        if now is not None and now.power_w is not None:
            self._powers_w.append(now.power_w)

    def _read(self, wanted: Collection[str]) -> Telemetry | None:
        return self._sensor.read(self._uuid, wanted) if self._sensor and self._uuid else None


class HeatLog:
    """A device's sensors during a load, once a second.

    Args:
        read: returns a reading; None if unknown.
        clock: the seconds of a clock that never goes back.
    """

    def __init__(
        self, read: Callable[[], Telemetry | None], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._read, self._clock = read, clock
        self._read_at_s = -math.inf
        self._readings: list[Telemetry] = []

    def poll(self, spent_s: float) -> None:
        """Read the sensors if it is time to, between two batches.

        Args:
            spent_s: the timed part of the load until now.
        """
        if self._clock() - self._read_at_s < _HEAT_PERIOD_S:
            return
        self._read_at_s = self._clock()
        now = self._read()
        if now is not None:
            self._readings.append(now.at(spent_s))

    def heat(self, whole_s: float, throttled: bool | None) -> RunHeat:
        """Return what the readings say.

        Args:
            whole_s: the timed part of the whole load.
            throttled: whether the card slowed itself down by its state; None if unknown.
        """
        every = self._readings
        for one in every:
            throttled = _seen(throttled, is_throttled(one.clock_event_reasons, None, None))
        return RunHeat(
            first_clock_mhz=_median(
                one.sm_clock_mhz for one in every if is_first(one.at_s, whole_s)
            ),
            steady_clock_mhz=_median(
                one.sm_clock_mhz for one in every if is_steady(one.at_s, whole_s)
            ),
            highest_temperature_c=_highest(one.temperature_c for one in every),
            highest_hotspot_c=_highest(one.hotspot_c for one in every),
            highest_power_w=_highest(one.power_w for one in every),
            was_throttled=throttled,
        )


def _median(numbers: Iterable[float | None]) -> float | None:
    known = sorted(number for number in numbers if number is not None)
    return quantile(known, 0.5) if known else None


def _highest(numbers: Iterable[float | None]) -> float | None:
    return max((number for number in numbers if number is not None), default=None)


def _seen(before: bool | None, now: bool | None) -> bool | None:
    """Return True if either is True; None counts as unknown."""
    return before if now is None else bool(before) or now


def _with_faster_link(now: Telemetry, before: Telemetry) -> Telemetry:
    if _link(now) >= _link(before):
        return now
    return msgspec.structs.replace(
        now, pcie_generation=before.pcie_generation, pcie_width=before.pcie_width
    )


def _link(now: Telemetry) -> tuple[int, int]:
    return now.pcie_generation or 0, now.pcie_width or 0
