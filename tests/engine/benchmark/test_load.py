import threading
from collections.abc import Collection

import pytest

from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.run_messages import OtherLoad
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.benchmark import load
from gpu_studio.engine.benchmark.load import DeviceLoad

GAME = Telemetry(utilization_percent=97.0, sm_clock_mhz=2000.0)
IDLE = Telemetry(utilization_percent=3.0, sm_clock_mhz=200.0)


class Sensor:
    """Answers one reading of a card of up to 2000 MHz after the other."""

    def __init__(self, *answers: Telemetry | None, program: str = "game.exe") -> None:
        self.answers, self._program = list(answers), program

    def read(self, identity: str, wanted: Collection[str]) -> Telemetry | None:
        return self.answers.pop(0)

    def device(self, identity: str) -> Device:
        return Device(kind="cuda", name="GT 1030", sm_clock_max_mhz=2000.0)

    def busiest_program(self, identity: str) -> str:
        return self._program


class Stop(threading.Event):
    """Counts what is waited, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        self.waited_s += timeout or 0.0
        return False


@pytest.fixture
def now_s(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(load.time, "perf_counter", lambda: clock[0])
    return clock


def of_others(device: DeviceLoad, *answers: Telemetry | None) -> OtherLoad | None:
    sensor = Sensor(*answers)
    found = device.of_others(sensor, "GPU-1", Stop())
    assert not sensor.answers
    return found


def test_a_game_on_the_card_is_found_and_named():
    assert of_others(DeviceLoad(), GAME, GAME) == OtherLoad(percent=97.0, program="game.exe")


def test_a_moment_of_work_is_over_at_the_second_reading():
    stop = Stop()
    assert DeviceLoad().of_others(Sensor(GAME, IDLE), "GPU-1", stop) is None
    assert stop.waited_s > 1.0  # the driver's mean is over up to a second


@pytest.mark.parametrize(
    ("percent", "clock_share", "is_busy"),
    [
        (10.0, 1.0, False),
        (11.0, 1.0, True),
        (11.0, None, True),
        (25.0, 0.2, False),  # a desktop at the lowest clocks
        (26.0, 0.2, True),
    ],
)
def test_a_desktop_is_no_load(percent, clock_share, is_busy):
    clock_mhz = None if clock_share is None else 2000.0 * clock_share
    reading = Telemetry(utilization_percent=percent, sm_clock_mhz=clock_mhz)
    answers = [reading] * (1 + is_busy)
    assert (of_others(DeviceLoad(), *answers) is not None) is is_busy


@pytest.mark.parametrize("unknown", [None, Telemetry()])
def test_what_the_driver_does_not_report_is_no_load(unknown):
    assert of_others(DeviceLoad(), unknown) is None


def test_our_own_work_is_never_read_as_that_of_others(now_s):
    device = DeviceLoad()
    assert of_others(device, IDLE) is None
    device.begin()
    now_s[0] += 5.0
    device.end()
    now_s[0] += 0.9
    assert of_others(device) is None  # no reading: the driver still counts our work
    now_s[0] += 0.2
    assert of_others(device, GAME, GAME) is not None


def test_runs_without_a_pause_keep_the_reading_before_the_first(now_s):
    device = DeviceLoad()
    assert of_others(device, GAME, GAME) is not None
    device.begin()
    device.end()
    assert of_others(device) == OtherLoad(percent=97.0, program="game.exe")
