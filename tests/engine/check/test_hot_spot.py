"""A wide gap and hot memory are noted once in a round, and never change a verdict."""

from __future__ import annotations

import msgspec

from gpu_studio.core.check.check_verdict import stage_verdict
from gpu_studio.core.check.heat import LoggedReading
from gpu_studio.core.messages.check_messages import Vitals
from gpu_studio.engine.check.heat import HeatWatch
from tests.engine.check.benches import bench_for


def test_each_is_noted_once_and_the_stage_still_passes() -> None:
    watch = HeatWatch()
    hot = Vitals(temperature_c=70.0, hotspot_c=101.0, memory_temperature_c=104.0)
    for number in range(2):
        bench = bench_for("load")
        bench.readings = [
            LoggedReading(float(second), msgspec.structs.replace(hot, hotspot_c=101.0 + second % 2))
            for second in range(20)
        ]
        watch.end_stage(bench)
        kinds = [finding.kind for finding in bench.findings]
        assert kinds == ([] if number else ["hotspot_gap", "hot_memory"])
        assert all(one.severity == "note" and one.count == 0 for one in bench.findings)
        assert stage_verdict(bench.findings, has_tested=True, is_complete=True) == "passed"
        if not number:
            assert "31" in bench.findings[0].sentence
            assert all("NVIDIA" in one.sentence for one in bench.findings)


def test_a_usual_card_has_no_note() -> None:
    bench = bench_for("load")
    usual = Vitals(temperature_c=70.0, hotspot_c=85.0, memory_temperature_c=84.0)
    bench.readings = [LoggedReading(float(second), usual) for second in range(20)]
    HeatWatch().end_stage(bench)
    assert not bench.findings
