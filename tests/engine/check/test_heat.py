import math
from collections.abc import Callable, Sequence

import msgspec
import pytest

from gpu_studio.core.check.check_record import stage_verdict
from gpu_studio.core.messages.check_messages import STAGE_NAMES, CheckedDevice, StageName
from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.engine.check.heat import HeatWatch, is_steady, lasting_gap_c
from gpu_studio.engine.check.stage_run import StageRun
from tests.engine.check.stage_runs import CardRun, TickingClock, TickingRun, card_run, run_for

GT_1030 = CheckedDevice(
    address="cuda:0", name="GT 1030", slowdown_c=97.0, shutdown_c=102.0, power_limit_w=30.0
)
COOL = Telemetry(temperature_c=60.0, sm_clock_mhz=1468.0, clock_event_reasons=ClockReason(0))
Reading = Telemetry | None


def read_all(
    name: StageName,
    readings: Sequence[Reading],
    *,
    facts: CheckedDevice | None = GT_1030,
    offset_s: float = 0.0,
    kind: type[StageRun] = CardRun,
) -> StageRun:
    """Return the run of a card after a stage with these readings, one a second."""
    left = list(readings)
    clock = TickingClock(0.0)
    run = run_for(
        name, kind=kind, read=lambda: left.pop(0), facts=facts, offset_s=offset_s, clock=clock
    )
    for _ in readings:
        run.vitals(at_once=True)
        clock.now_s += 1.0
    return run


def judged(run: StageRun) -> None:
    HeatWatch().end_stage(run)


def kinds(run: StageRun) -> list[tuple[str, str]]:
    return [(one.kind, one.severity) for one in run.findings]


def with_(**changes: object) -> Telemetry:
    return Telemetry(**{"temperature_c": 60.0, "sm_clock_mhz": 1468.0, **changes})


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_brake_is_found_in_every_stage_up_to_its_last_second(name: StageName) -> None:
    late = with_(temperature_c=98.0, sm_clock_mhz=300.0, clock_event_reasons=ClockReason(0x40))
    run = read_all(name, [*[COOL] * 5, *[late] * 5], offset_s=60.0)
    judged(run)
    assert kinds(run) == [("throttled", "doubt")]
    assert "for about 5 s" in run.findings[0].sentence


@pytest.mark.parametrize(
    ("facts", "degrees", "is_told"),
    [(GT_1030, 97.0, True), (GT_1030, 96.0, False), (None, 105.0, True), (None, 95.0, False),
     (CheckedDevice(address="cuda:0", name="card", operating_max_c=89.0), 89.0, False),
     (CheckedDevice(address="cuda:0", name="card", operating_max_c=89.0), 90.0, True)],
)  # fmt: skip
def test_a_temperature_at_a_limit_needs_no_reason(
    facts: CheckedDevice | None, degrees: float, is_told: bool
) -> None:
    """From the first second on: a card may be hot when a check begins."""
    hot = with_(temperature_c=degrees, clock_event_reasons=ClockReason(0))
    run = read_all("memory", [hot] * 8, facts=facts)
    judged(run)
    assert kinds(run) == [("overheated", "doubt")] * is_told


@pytest.mark.parametrize("lost", [None, Telemetry(), with_(temperature_c=255.0),
                                  with_(temperature_c=0.0)])  # fmt: skip
def test_a_temperature_that_goes_away_is_reported(lost: Reading) -> None:
    run = read_all("compute", [*[COOL] * 5, *[lost] * 8])
    judged(run)
    assert kinds(run) == [("heat_unknown", "doubt")]


def slowed(reasons: int) -> list[Reading]:
    low = with_(sm_clock_mhz=600.0, clock_event_reasons=ClockReason(reasons))
    return [*[COOL] * 12, *[low] * 10]


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [(0x0, [("low_clock", "doubt")]), (0x4, [("low_clock", "note")]),
     (0x2, [("low_clock", "note")]), (0x1, [])],
)  # fmt: skip
def test_a_clock_that_falls_by_half_is_reported_with_its_reason(
    reasons: int, expected: list[tuple[str, str]]
) -> None:
    """No GeForce reports its base clock."""
    run = read_all("load", slowed(reasons))
    judged(run)
    assert kinds(run) == expected


def test_a_low_clock_between_bursts_or_in_a_pause_says_nothing() -> None:
    run = read_all("load", slowed(0))
    run.rested = 11.5, 23.0
    judged(run)
    assert "low_clock" not in [one.kind for one in run.findings]


def test_a_laptop_whose_cpu_slows_down_is_usual() -> None:
    hot = with_(temperature_c=97.0, clock_event_reasons=ClockReason.HARDWARE_HEAT)
    laptop = CheckedDevice(address="cpu", name="CPU", slowdown_c=100.0, is_laptop=True)
    run = read_all("load", [hot] * 20, facts=laptop, kind=TickingRun)
    judged(run)
    assert kinds(run) == [("throttled", "note")]
    assert "usual for a laptop" in run.findings[0].sentence


def test_a_wide_gap_and_hot_memory_are_noted_once_and_the_stage_still_passes() -> None:
    watch = HeatWatch()
    hot = Telemetry(temperature_c=70.0, hotspot_c=101.0, memory_temperature_c=104.0)
    for number in range(2):
        run = card_run("load")
        run.readings = [
            msgspec.structs.replace(hot, hotspot_c=101.0 + second % 2).at(float(second))
            for second in range(20)
        ]
        watch.end_stage(run)
        kinds = [finding.kind for finding in run.findings]
        assert kinds == ([] if number else ["hotspot_gap", "hot_memory"])
        assert all(one.severity == "note" and one.count == 0 for one in run.findings)
        assert stage_verdict(run.findings, has_tested=True, is_complete=True) == "passed"
        if not number:
            assert "31" in run.findings[0].sentence
            assert all("NVIDIA" in one.sentence for one in run.findings)


@pytest.mark.parametrize(
    ("reasons", "seconds", "is_told"),
    [(0x40, 6, True), (0x40, 1, False), (0x04, 20, False),
     (0x20, 3, False), (0x20, 20, True)],
)  # fmt: skip
def test_brakes_are_reported_if_they_last(reasons: int, seconds: int, is_told: bool) -> None:
    braked = with_(temperature_c=92.0, clock_event_reasons=ClockReason(reasons))
    run = read_all("load", [*[braked] * seconds, *[COOL] * (40 - seconds)])
    judged(run)
    doubts = [one for one in run.findings if one.severity == "doubt"]
    assert [one.kind for one in doubts] == ["throttled"] * is_told
    assert all("92" in one.sentence for one in doubts)


@pytest.mark.parametrize(
    ("fan_percent", "degrees", "is_told"),
    [(0.0, 82.0, True), (0.0, 55.0, False), (34.0, 82.0, False), (None, 82.0, False)],
)
def test_a_fan_that_stands_still_on_a_hot_card_is_reported(
    fan_percent: float | None, degrees: float, is_told: bool
) -> None:
    hot = Telemetry(
        temperature_c=degrees, fan_percent=fan_percent, clock_event_reasons=ClockReason(0)
    )
    run = read_all("load", [hot] * 12)
    judged(run)
    assert kinds(run) == [("fan_stopped", "doubt")] * is_told


# ── steady heat, and the hot spot ────────────────────────────────────────────────────────────────


def first_steady_s(degrees: Callable[[float], float], *, until_s: int = 1800) -> int | None:
    """Return when a sensor of whole degrees is first called steady, at one reading a second."""
    log: list[Telemetry] = []
    for second in range(until_s):
        log.append(Telemetry(at_s=float(second), temperature_c=math.floor(degrees(second))))
        if is_steady(log[-90:]):
            return second
    return None


def heating(tau_s: float) -> Callable[[float], float]:
    return lambda at_s: 35.0 + 45.0 * (1 - math.exp(-at_s / tau_s))


def test_a_card_on_its_way_is_not_steady() -> None:
    """45 °C in 300 s by 1 − 1/e: it is slower than 1 °C a minute after 659 s."""
    at_s = first_steady_s(heating(300.0))
    assert at_s is not None
    assert 640 < at_s < 800


@pytest.mark.parametrize("per_minute", [1.0, -1.5])
def test_a_degree_a_minute_is_never_steady(per_minute: float) -> None:
    assert first_steady_s(lambda at_s: 60.0 + per_minute * at_s / 60, until_s=1200) is None


def test_a_sensor_that_wavers_between_two_degrees_is_steady() -> None:
    at_s = first_steady_s(lambda second: 70.0 + second % 2)
    assert at_s is not None
    assert 60 < at_s < 90


def test_readings_that_are_missing_make_nothing_steady() -> None:
    log = [Telemetry(at_s=at_s, temperature_c=60.0) for at_s in (0.0, 1.0, 75.0)]
    assert not is_steady(log)
    assert not is_steady([Telemetry(at_s=float(at_s)) for at_s in range(100)])


def readings(*pairs: tuple[float | None, float | None]) -> list[Telemetry]:
    return [
        Telemetry(at_s=float(second), temperature_c=core, hotspot_c=spot)
        for second, (core, spot) in enumerate(pairs)
    ]


def test_the_gap_of_the_hot_spot_counts_if_it_lasts() -> None:
    assert lasting_gap_c(readings(*[(60.0, 75.0)] * 12, *[(61.0, 79.0)] * 12)) == 15.0
    stage = readings(*[(60.0, 72.0)] * 12, *[(70.0, 101.0)] * 24, *[(60.0, 70.0)] * 12)
    assert lasting_gap_c(stage) == 31.0


@pytest.mark.parametrize(
    "pairs",
    [
        [(60.0, 90.0), (60.0, 91.0)] * 8,
        [(60.0, None)] * 30,
        [(None, 90.0), (None, 91.0)] * 15,
        [(60.0, 90.0)] * 30,
    ],
    ids=["short", "no hot spot", "no core", "stuck"],
)
def test_without_both_for_some_time_there_is_no_gap(
    pairs: list[tuple[float | None, float | None]],
) -> None:
    assert lasting_gap_c(readings(*pairs)) <= 0
