import pytest

from gpu_studio.core.telemetry import Telemetry
from tests.engine.check.stage_runs import card_run, follow, run_for, sensor_of

COPYING = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=7)


@pytest.mark.parametrize(("replays", "severity"), [(8, "note"), (12, "doubt")])
def test_packets_that_were_sent_again_are_reported(replays: int, severity: str) -> None:
    more = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=replays)
    run = run_for("link", planned_s=4.0, read=sensor_of(COPYING, COPYING, more))
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [("link_errors", severity)]


def test_a_slow_link_is_reported() -> None:
    run = card_run("link", planned_s=9.0, read=lambda: COPYING)
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [("slow_link", "doubt")]
