"""The link: packets that were sent again, slow and narrow links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.check_messages import CheckedDevice
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check.link import LinkCheck, most_errors
from tests.engine.check.benches import TickingClock, bench_for, run, sensor_of

if TYPE_CHECKING:
    from gpu_studio.engine.check.stage import StageBench

COPYING = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=7)


def link_bench(clock: TickingClock, *readings: Telemetry) -> StageBench:
    card = CheckedDevice(address="cuda:0", name="GT 1030", pcie_width_max=16)
    return bench_for("link", budget_s=4.0, clock=clock, read=sensor_of(*readings), facts=card)


def test_packets_that_were_sent_again_are_reported() -> None:
    more = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=9)
    bench = link_bench(TickingClock(), COPYING, COPYING, more)
    run(LinkCheck(), bench)
    assert [finding.kind for finding in bench.findings] == ["link_errors"]
    assert "2 packets" in bench.findings[0].sentence


@pytest.mark.parametrize(("expected", "most"), [(0.04, 1), (0.128, 2), (3.0, 10)])
def test_as_many_packets_are_sent_again_as_the_standard_allows(expected: float, most: int) -> None:
    assert most_errors(expected) == most
