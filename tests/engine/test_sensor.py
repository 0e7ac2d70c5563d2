import os
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil
import pytest

from gpu_studio.core.devices.devices import Device, GpuProcess
from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.engine.sensor import CardWatch, CpuWatch


class Told:
    """A sensor that tells one reading after the other, and the processes beside each."""

    def __init__(
        self,
        *readings: Telemetry | None,
        computing: Sequence[int] = (),
        base_mhz: float | None = None,
    ) -> None:
        self._readings, self._computing = list(readings), list(computing)
        self._card = Device(kind="cuda", name="GT 1030", sm_clock_base_mhz=base_mhz)
        self.asked: list[str] = []

    def read(self, identity: str, wanted: Collection[str]) -> Telemetry | None:
        self.asked.append(identity)
        return self._readings.pop(0)

    def device(self, identity: str) -> Device:
        return self._card

    def processes(self, identity: str) -> tuple[GpuProcess, ...]:
        count = self._computing.pop(0) if self._computing else 0
        return tuple(GpuProcess(pid=os.getpid() + number) for number in range(count))


def watched(*readings: Telemetry | None, **told: Any) -> CardWatch:
    watch = CardWatch(Told(*readings, **told), "GPU-1")
    watch.begin()
    for _ in readings:
        watch.poll()
    return watch


def test_what_the_driver_does_not_report_is_unknown():
    blind = CardWatch(None, "GPU-1")
    blind.poll()
    for watch in (watched(None), watched(Telemetry()), blind):
        assert watch.throttled is None
        assert watch.other_processes is None


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        (0x0, False),
        (0x1, False),  # idle
        (0x4, False),  # the software power cap is every card's normal limit under load
        (0x41, True),  # hardware thermal
    ],
)
def test_thermal_and_power_brakes_throttle(reasons: int, throttled: bool):
    assert watched(Telemetry(clock_event_reasons=ClockReason(reasons))).throttled is throttled


def test_a_clock_under_three_quarters_of_the_base_clock_throttles():
    slow, fine = Telemetry(sm_clock_mhz=1124), Telemetry(sm_clock_mhz=1126)
    assert watched(slow, base_mhz=1500.0).throttled is True
    assert watched(fine, base_mhz=1500.0).throttled is False
    assert watched(Telemetry(sm_clock_mhz=300)).throttled is None


def test_a_clock_far_below_the_highest_boost_is_no_throttling():
    """A laptop at its power limit lives at 65 % of its highest boost, which is as it should be."""
    laptop = Telemetry(clock_event_reasons=ClockReason(0x4), sm_clock_mhz=1365)
    seen = watched(laptop)
    assert (seen.throttled, seen.power_capped) == (False, True)
    assert watched(Telemetry(sm_clock_mhz=300)).power_capped is None
    hot = watched(Telemetry(clock_event_reasons=ClockReason(0x24), sm_clock_mhz=1365))
    assert (hot.throttled, hot.power_capped) == (True, True)


def test_what_was_seen_once_stays():
    hot = Telemetry(clock_event_reasons=ClockReason(0x40))
    cool = Telemetry(clock_event_reasons=ClockReason(0))
    for readings, computing in (((hot, cool), (2, 1)), ((cool, hot), (1, 2)), ((hot, None), (2,))):
        watch = watched(*readings, computing=computing)
        assert watch.throttled is True
        assert watch.other_processes is True
    assert watched(cool, cool, computing=(1, 1)).other_processes is False


class SystemTimes(NamedTuple):
    user: float
    idle: float
    guest: float


class Counters:
    """The system's and this process's counters, in seconds of core time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.own_s = self.others_s = self.idle_s = self.guests_s = 0.0
        self.child_s = self.ended_s = 0.0
        own = SimpleNamespace(cpu_times=self.own, children=self.children)
        monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
        monkeypatch.setattr(psutil, "cpu_times", self.system)
        monkeypatch.setattr(psutil, "Process", lambda: own)

    def own(self) -> SimpleNamespace:
        return SimpleNamespace(
            user=self.own_s, system=0.0, children_user=self.ended_s, children_system=0.0
        )

    def children(self, recursive: bool) -> list[SimpleNamespace]:
        assert recursive
        child = SimpleNamespace(user=0.0, system=self.child_s)  # as on Windows

        def ended() -> None:
            raise psutil.NoSuchProcess(1)

        return [SimpleNamespace(cpu_times=lambda: child), SimpleNamespace(cpu_times=ended)]

    def system(self) -> SystemTimes:
        # Linux counts what a virtual machine spends twice: as a guest's time and as its user's.
        family_s = self.own_s + self.child_s + self.ended_s
        return SystemTimes(family_s + self.others_s, self.idle_s, self.guests_s)

    def spend(self, *, own_s: float, others_s: float, idle_s: float, guests_s: float = 0.0) -> None:
        self.own_s += own_s
        self.others_s += others_s
        self.idle_s += idle_s
        self.guests_s += guests_s


@pytest.mark.parametrize(
    ("spent", "busy"),
    [
        ({"own_s": 3.7, "others_s": 0.3, "idle_s": 0.0}, False),
        ({"own_s": 3.5, "others_s": 0.5, "idle_s": 0.0}, True),
        ({"own_s": 1.0, "others_s": 0.0, "idle_s": 3.0}, False),
        ({"own_s": 0.1, "others_s": 0.2, "idle_s": 0.0}, None),  # too short to tell
    ],
)
def test_other_programs_on_the_cpu_are_noticed(monkeypatch, spent, busy):
    counters = Counters(monkeypatch)
    counters.spend(own_s=10.0, others_s=90.0, idle_s=0.0)  # what was before does not count
    watch = CpuWatch()
    watch.begin()
    counters.spend(**spent)
    watch.end()
    assert watch.other_processes is busy


def test_what_works_for_a_run_is_no_other_program(monkeypatch):
    counters = Counters(monkeypatch)
    watch = CpuWatch()
    watch.begin()
    counters.child_s, counters.ended_s = 3.0, 2.0
    counters.spend(own_s=1.0, others_s=0.1, idle_s=0.0)
    watch.end()
    assert watch.other_processes is False


def test_the_time_of_guests_is_counted_once(monkeypatch):
    counters = Counters(monkeypatch)
    watch = CpuWatch()
    watch.begin()
    counters.spend(own_s=3.7, others_s=0.3, idle_s=0.0, guests_s=0.3)
    watch.end()
    assert watch.other_processes is False


def test_the_link_is_the_fastest_that_was_seen_under_load():
    idle = Telemetry(pcie_generation=1, pcie_width=4, sm_clock_mhz=300)
    busy = Telemetry(pcie_generation=3, pcie_width=4, sm_clock_mhz=1468)
    for readings in ((idle, busy), (busy, idle)):
        now = watched(*readings).card.telemetry
        assert (now.pcie_generation, now.pcie_width) == (3, 4)
        assert now.sm_clock_mhz == readings[-1].sm_clock_mhz
    assert CpuWatch().card is None
