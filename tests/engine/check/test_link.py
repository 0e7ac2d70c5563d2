import pytest

from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check.stage_run import StepTimes
from tests.engine.check.stage_runs import card_run, follow, run_for, sensor_of

COPYING = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=7)


@pytest.mark.parametrize(("replays", "severity"), [(8, "note"), (12, "doubt")])
def test_packets_that_were_sent_again_are_reported(replays: int, severity: str) -> None:
    more = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=replays)
    run = run_for("link", budget_s=4.0, read=sensor_of(COPYING, COPYING, more))
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [("link_errors", severity)]


def test_a_slow_link_is_reported() -> None:
    run = card_run("link", budget_s=9.0, read=lambda: COPYING)
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [("slow_link", "doubt")]


def slowness(times_s: list[float], usual_s: float = 1.0) -> list[str]:
    """Return what is found in a slow step's times after six usual steps."""
    run = run_for("link")
    times, left = StepTimes(run, "copy"), list(times_s)
    for number in range(6):
        times.step(lambda _: 1.0, number)
    times.step(lambda number: left.pop(0) if number else usual_s, 6)
    return [one.sentence for one in run.findings]


def test_a_step_that_stays_slow_is_reported() -> None:
    assert "8 times as long" in slowness([10.0, *[8.0] * 7])[0]


def test_a_step_that_is_delayed_once_and_a_busy_pc_are_not() -> None:
    assert slowness([3.9]) == []
    assert slowness([10.0, 9.0, 9.0, 1.1]) == []
    assert slowness([10.0, *[9.0] * 7], usual_s=8.0) == []
