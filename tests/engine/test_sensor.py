from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import psutil
import pytest

from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.devices.devices import CardState
from gpu_studio.engine.sensor import CardWatch, CpuWatch


class Told:
    """A sensor that tells one state after the other."""

    def __init__(self, *states: CardState | None) -> None:
        self._states = list(states)
        self.asked: list[str] = []

    def read(self, uuid: str) -> CardState | None:
        self.asked.append(uuid)
        return self._states.pop(0)


def watched(*states: CardState | None) -> CardWatch:
    watch = CardWatch(Told(*states), "GPU-1")
    for _ in states:
        watch.poll()
    return watch


def test_what_the_driver_does_not_report_is_unknown():
    blind = CardWatch(None, "GPU-1")
    blind.poll()
    for watch in (watched(None), watched(CardState()), blind):
        assert watch.throttled is None
        assert watch.other_processes is None


def test_the_cpu_is_not_asked_of_a_card():
    sensor = Told()
    watch = CardWatch(sensor, None)
    watch.poll()
    assert watch.clock_mhz() is None
    assert sensor.asked == []


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        (0x0, False),
        (0x1, False),  # idle
        (0x4, False),  # the software power cap is every card's normal limit under load
        (0x8, True),  # hardware slowdown
        (0x20, True),  # software thermal
        (0x40, True),  # hardware thermal
        (0x80, True),  # power brake
        (0x41, True),
    ],
)
def test_thermal_and_power_brakes_throttle(reasons: int, throttled: bool):
    assert watched(CardState(clock_event_reasons=ClockReason(reasons))).throttled is throttled


def test_a_clock_under_three_quarters_of_the_base_clock_throttles():
    slow = CardState(sm_clock_mhz=1124, sm_clock_base_mhz=1500)
    fine = CardState(sm_clock_mhz=1126, sm_clock_base_mhz=1500)
    assert watched(slow).throttled is True
    assert watched(fine).throttled is False
    assert watched(CardState(sm_clock_mhz=300)).throttled is None


def test_a_clock_far_below_the_highest_boost_is_no_throttling():
    """A laptop at its power limit lives at 65 % of its highest boost, which is as it should be."""
    laptop = CardState(
        clock_event_reasons=ClockReason(0x4), sm_clock_mhz=1365, sm_clock_max_mhz=2100
    )
    seen = watched(laptop)
    assert (seen.throttled, seen.power_capped) == (False, True)
    assert watched(CardState(sm_clock_mhz=300)).power_capped is None
    hot = watched(CardState(clock_event_reasons=ClockReason(0x24), sm_clock_mhz=1365))
    assert (hot.throttled, hot.power_capped) == (True, True)


def test_what_was_seen_once_stays():
    hot = CardState(clock_event_reasons=ClockReason(0x40), other_processes=True)
    cool = CardState(clock_event_reasons=ClockReason(0), other_processes=False)
    for states in ((hot, cool), (cool, hot), (hot, None)):
        watch = watched(*states)
        assert watch.throttled is True
        assert watch.other_processes is True
    assert watched(cool, cool).other_processes is False


def test_the_clock_is_the_cards():
    sensor = Told(CardState(sm_clock_mhz=1468.0))
    assert CardWatch(sensor, "GPU-7").clock_mhz() == 1468.0
    assert sensor.asked == ["GPU-7"]


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
        ({"own_s": 4.0, "others_s": 0.0, "idle_s": 0.0}, False),
        ({"own_s": 3.7, "others_s": 0.3, "idle_s": 0.0}, False),
        ({"own_s": 3.5, "others_s": 0.5, "idle_s": 0.0}, True),
        ({"own_s": 1.0, "others_s": 1.0, "idle_s": 2.0}, True),
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
    idle = CardState(pcie_generation=1, pcie_width=4, sm_clock_mhz=300)
    busy = CardState(pcie_generation=3, pcie_width=4, sm_clock_mhz=1468)
    for states in ((idle, busy), (busy, idle)):
        state = watched(*states).state
        assert (state.pcie_generation, state.pcie_width) == (3, 4)
        assert state.sm_clock_mhz == states[-1].sm_clock_mhz
    assert watched(None).state is None
    assert CpuWatch().state is None
