import time
from threading import Event
from typing import Any

import pytest

from gpu_studio.core.benchmark import sustained
from gpu_studio.core.benchmark.sustained import unsteadiness
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages import run_messages
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.engine import sensor
from gpu_studio.engine.benchmark import load, rounds, run
from gpu_studio.engine.sensor import HeatLog
from tests.engine.answers import ask, run_request

_TICK_S = time.get_clock_info("monotonic").resolution  # 16 ms on Windows


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_messages, "SUSTAINED_LOAD_S", 0.2)


def finished(**changes: object) -> RunFinished:
    (*_, result) = ask(run_request(budget_s=0.01, **changes))
    assert isinstance(result, RunFinished), result
    return result


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    asked: list[float] = []
    build = rounds.Pace.__init__

    def noted(pace: rounds.Pace, rest_s: float, stop: object) -> None:
        asked.append(rest_s)
        build(pace, rest_s, stop)

    monkeypatch.setattr(rounds.Pace, "__init__", noted)
    return asked


@pytest.fixture
def least_loads_s(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Return how long every run that is made warms up at least."""
    asked: list[float | None] = []
    warm_up = rounds.warm_up

    def noted(*args: Any, least_s: float | None, **kwargs: Any) -> float:
        asked.append(least_s)
        return warm_up(*args, least_s=least_s, **kwargs)

    monkeypatch.setattr(rounds, "warm_up", noted)
    return asked


def test_a_sustained_run_loads_long_times_long_and_never_rests(
    rests: list[float], least_loads_s: list[float | None]
):
    usual, lasting = finished(rest_s=0.04), finished(rest_s=0.04, sustained=True)
    assert set(rests[:-1]) == {0.04}
    assert rests[-1] == 0.0
    assert (usual.sustained, lasting.sustained) == (False, True)
    assert least_loads_s == [None, 0.2]
    assert lasting.times.warm_up_s >= 0.2 - _TICK_S
    assert lasting.times.timed_s >= 0.199
    assert "not steady" not in usual.doubts


@pytest.mark.parametrize(
    ("samples_s", "words"),
    [
        ([1.0] * 50 + [1.5] * 50, "50 % slower"),
        ([1.5] * 50 + [1.0] * 50, "33 % faster"),
        ([1.0, 1.02] * 25 + [1.06, 1.09] * 25, "4 to 9 % slower"),
        ([1.0], "one sample"),
    ],
)
def test_samples_that_still_move_are_in_doubt(samples_s: list[float], words: str):
    assert words in unsteadiness(samples_s).replace("\u202f", " ")


def test_samples_that_stay_are_not():
    assert unsteadiness([1.0, 1.01, 1.0, 0.99] * 10) == ""
    # The medians of the halves differ by 3 %, but each half drifts by more.
    drifting = ([1.0] * 4 + [1.08] * 4) * 3, ([1.04] * 4 + [1.10] * 4) * 3
    assert unsteadiness([*drifting[0], *drifting[1]]) == ""


@pytest.mark.parametrize(
    ("clocks_mhz", "words"),
    [
        ([1700.0] * 20 + [1500.0] * 20, "fell by 12 %"),
        ([1500.0] * 20 + [1600.0] * 20, "rose by 7 %"),
    ],
)
def test_a_clock_that_still_moves_is_in_doubt(clocks_mhz: list[float], words: str):
    assert words in unsteadiness([1.0] * 40, clocks_mhz).replace("\u202f", " ")


def test_a_result_says_how_long_the_device_had_worked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(load, "_loads", {})
    monkeypatch.setattr(load, "_LONGEST_PAUSE_S", 3600.0)
    first, second = finished(), finished()
    assert first.conditions.loaded_s >= first.times.warm_up_s - _TICK_S
    assert (
        second.conditions.loaded_s >= first.conditions.loaded_s + second.times.warm_up_s - _TICK_S
    )


class Sensors:
    """The sensors of a CPU that gets hot; it reports no power."""

    def __init__(self) -> None:
        self._read = 0

    def read(self, identity: str, wanted: object) -> Telemetry:
        assert identity == "cpu"
        self._read += 1
        return Telemetry(temperature_c=40.0 + self._read, sm_clock_mhz=3000.0)


def test_a_load_is_one_piece_without_rests_and_reads_the_sensors(
    rests: list[float], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sensor, "_HEAT_PERIOD_S", 0.0)
    request = run_request(budget_s=0.1, rest_s=0.04, load=True)
    *_, result = run.WorkloadRun(request, Event(), sensor=Sensors()).events()
    assert isinstance(result, RunFinished)
    assert rests == [0.0]
    assert result.rounds_s == (result.median_s,)
    heat = result.conditions.heat
    assert heat is not None
    assert heat.steady_clock_mhz == 3000.0
    assert heat.highest_temperature_c >= 41.0
    assert (heat.highest_hotspot_c, heat.highest_power_w, heat.was_throttled) == (None, None, None)


def test_the_first_seconds_and_the_second_half_of_a_load_are_read_apart():
    readings = iter([(1800.0, 60.0), (1800.0, 70.0), (1500.0, 85.0), (1500.0, 84.0)])

    def read() -> Telemetry:
        clock_mhz, degrees = next(readings)
        reasons = ClockReason.DRIVER_HEAT if degrees > 80 else ClockReason(0)
        return Telemetry(
            temperature_c=degrees, sm_clock_mhz=clock_mhz, clock_event_reasons=reasons,
            hotspot_c=degrees + 10, power_w=30.0,
        )  # fmt: skip

    log = HeatLog(read, iter(range(100)).__next__)
    for spent_s in (0.1, 2.0, 12.0, 19.0):
        log.poll(spent_s)
    heat = log.heat(20.0, throttled=None)
    assert (heat.first_clock_mhz, heat.steady_clock_mhz) == (1800.0, 1500.0)
    assert (heat.highest_temperature_c, heat.highest_hotspot_c) == (85.0, 95.0)
    assert (heat.highest_power_w, heat.was_throttled) == (30.0, True)


def test_the_speed_that_held_is_beside_that_of_the_first_seconds():
    boosted, warm = [0.010] * 350, [0.012] * 1100
    held = sustained.held_speed(boosted + warm, 2)
    assert held is not None
    assert held.seconds == pytest.approx(2 * (3.5 + 13.2))
    assert (held.first_s, held.steady_s) == (0.010, 0.012)
    assert held.ratio_ci95 == pytest.approx((10 / 12, 10 / 12))


def test_a_call_that_the_time_has_no_room_for_is_refused_before_it_is_made():
    *_, end = ask(run_request(size=600, longest_call_s=1e-9))
    assert isinstance(end, RunFailed)
    assert end.failure.kind is FailureKind.TOO_SLOW


def test_a_run_without_findings_only_times():
    usual = finished(workload="train_step", size=32)
    bare = finished(workload="train_step", size=32, with_findings=False)
    assert usual.details.curves
    assert usual.details.findings
    assert (bare.details.curves, bare.details.findings) == ({}, ())
