"""What a run wants to know of the device it works on. No torch here."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

import msgspec
import psutil

from gpu_studio.core.devices.devices import is_power_capped, is_throttled

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of all cores' time. A desktop at rest stays below; a second busy program on eight cores does not.
_LARGEST_SHARE_OF_OTHERS = 0.10
# The system counts in ticks of 10 ms: a shorter run is not long enough to tell.
_SHORTEST_WATCH_S = 0.2


class CardState(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver says of a card while it works; None is "not told".

    The link is the one in use: an idle card drops to a slower one. The base clock is the one that
    the card is sold with, below its highest boost.
    """

    clock_event_reasons: int | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    sm_clock_base_mhz: float | None = None
    other_processes: bool | None = None
    memory_clock_max_mhz: float | None = None
    memory_bus_width_bits: int | None = None
    pcie_generation: int | None = None
    pcie_width: int | None = None


class Sensor(Protocol):
    """Reads a card between batches, never in one."""

    def read(self, uuid: str) -> CardState | None:
        """Return a card's state now, or None where nobody can tell. Never raises."""

    def engine_bytes(self, uuid: str) -> int | None:
        """Return what this process has of a card's memory, its CUDA context included.

        None where nobody can tell. Never raises.
        """


class Watch(Protocol):
    """Looks at a device during the timed part; None in a result is "not told"."""

    throttled: bool | None
    power_capped: bool | None
    other_processes: bool | None
    # The last that the driver said of a card, with the fastest link that was seen.
    state: CardState | None

    @property
    def clocks_mhz(self) -> Sequence[float]:
        """The SM clock at each look during the timed part; empty if nothing tells it."""

    def clock_mhz(self) -> float | None:
        """Return the device's clock now."""

    def begin(self) -> None:
        """The timed part begins."""

    def poll(self) -> None:
        """Look once, between two batches."""

    def end(self) -> None:
        """The timed part is over."""


class CpuWatch:
    """Whether other programs kept the CPU busy while this process and its children were timed.

    Threads that wait for a core which somebody else holds make small operations a thousand times
    slower, evenly: the samples' own spread does not show it.
    """

    throttled: bool | None = None
    power_capped: bool | None = None
    state: CardState | None = None
    clocks_mhz: Sequence[float] = ()

    def __init__(self) -> None:
        self.other_processes: bool | None = None
        self._process = psutil.Process()
        self._before = (0.0, 0.0, 0.0)

    def clock_mhz(self) -> float | None:
        """Return None: the CPU needs no clock to settle."""
        return None

    def begin(self) -> None:
        """Read the counters."""
        self._before = self._read()

    def poll(self) -> None:
        """Do nothing: the counters add up by themselves."""

    def end(self) -> None:
        """Compare the counters."""
        own_s, busy_s, all_s = (
            after - before for after, before in zip(self._read(), self._before, strict=True)
        )
        if all_s >= _SHORTEST_WATCH_S * (psutil.cpu_count() or 1):
            self.other_processes = (busy_s - own_s) / all_s > _LARGEST_SHARE_OF_OTHERS

    def _read(self) -> tuple[float, float, float]:
        """Return seconds of core time: the family's, all processes', and all there was."""
        own_s, system = _family_s(self._process), psutil.cpu_times()
        idle_s = system.idle + getattr(system, "iowait", 0.0)
        # Linux counts the time of guests in that of users as well.
        guests_s = getattr(system, "guest", 0.0) + getattr(system, "guest_nice", 0.0)
        all_s = sum(system) - guests_s
        return own_s, all_s - idle_s, all_s


def _family_s(process: psutil.Process) -> float:
    """Return the core time of a process and its children, those that have ended included.

    Loaders and the processes of a group work for the run. Windows does not tell of those that
    have ended.
    """
    family_s = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended: its parent counts it
            spent = one.cpu_times()
            family_s += spent.user + spent.system
            family_s += getattr(spent, "children_user", 0.0)
            family_s += getattr(spent, "children_system", 0.0)
    return family_s


class CardWatch:
    """What the sensor said during the timed part, in the words of the result.

    Args:
        sensor: reads the card; None where nobody can.
        uuid: the card; None where it has none to be known by.
    """

    def __init__(self, sensor: Sensor | None, uuid: str | None) -> None:
        self._sensor = sensor
        self._uuid = uuid
        self.state: CardState | None = None
        self.throttled: bool | None = None
        self.power_capped: bool | None = None
        self.other_processes: bool | None = None
        self.clocks_mhz: list[float] = []

    def clock_mhz(self) -> float | None:
        """Return the SM clock now, None where it is not told."""
        state = self._read()
        return state.sm_clock_mhz if state else None

    def begin(self) -> None:
        """Do nothing: a card is looked at while it works."""

    def end(self) -> None:
        """Do nothing: what was seen is noted."""

    def poll(self) -> None:
        """Read the card once; what was seen once stays."""
        state = self._read()
        if state is None:
            return
        self.state = _with_faster_link(state, self.state)
        if state.sm_clock_mhz is not None:
            self.clocks_mhz.append(state.sm_clock_mhz)
        reasons = state.clock_event_reasons
        slow = is_throttled(reasons, state.sm_clock_mhz, state.sm_clock_base_mhz)
        self.throttled = _seen(self.throttled, slow)
        self.power_capped = _seen(self.power_capped, is_power_capped(reasons))
        if state.other_processes is not None:
            self.other_processes = bool(self.other_processes) or state.other_processes

    def _read(self) -> CardState | None:
        return self._sensor.read(self._uuid) if self._sensor and self._uuid else None


def _seen(before: bool | None, now: bool | None) -> bool | None:
    """Return what stays seen: once true is true, and None says nothing."""
    return before if now is None else bool(before) or now


def _with_faster_link(now: CardState, before: CardState | None) -> CardState:
    if before is None or _link(now) >= _link(before):
        return now
    return msgspec.structs.replace(
        now, pcie_generation=before.pcie_generation, pcie_width=before.pcie_width
    )


def _link(state: CardState) -> tuple[int, int]:
    return state.pcie_generation or 0, state.pcie_width or 0
