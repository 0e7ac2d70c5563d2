"""A published table beside this PC."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from tests.cli.bench.terminal import asked
from tests.fakes.run_answers import call_time_s, run_events


def test_the_gt_1030_experiment_sets_this_pc_beside_the_published_table(engines, type_in):
    status, output, errors = type_in("preset", "gt1030", "--budget-s", "0.5")
    assert (status, errors) == (0, "")
    assert [(run.size, run.dtype, run.device, run.budget_s) for run in asked(engines)] == [
        (size, "float16", device, 0.5) for size in (512, 2048, 4096) for device in ("cpu", "cuda:0")
    ]
    assert all(fact in output.splitlines()[0] for fact in ("Radosław Śmigielski", "2025-03-01"))
    table = output.replace("×", "x").split("\n\n")[1].splitlines()
    assert table[1].split()[:5] == ["512", "x", "512", "512", "64.0"]
    assert sum("(published)" in line for line in table) == 6
    scaled = [line for line in table if "160" in line and "to 4096" in line]
    assert len(scaled) == 2
    cpu_s = 4096 * call_time_s(asked(engines)[4])
    assert f"{cpu_s:.1f} s" in scaled[0]


def test_a_preset_measures_the_speed_that_lasts_where_asked(engines, type_in):
    type_in("preset", "gt1030", "--sustained", "--full-length", "--device", "cpu")
    assert [run.sustained for run in asked(engines)] == [True] * 6
    assert {run.budget_s for run in asked(engines)[:3]} == {15.0}
    assert [run.calls for run in asked(engines)[3:]] != [None] * 3


def test_the_full_length_is_reported_before_it_begins(engines, type_in):
    _, output, _ = type_in("preset", "gt1030", "--full-length", "--device", "cpu")
    runs = asked(engines)
    assert len(runs) == 6
    for short, long in zip(runs[:3], runs[3:], strict=True):
        assert long.size == short.size
        assert long.budget_s == pytest.approx(long.size * call_time_s(long), rel=0.01)
    lines = output.splitlines()
    # 3 rows of 4096 × 4096 long
    (announced,) = (n for n, line in enumerate(lines) if "77.4 s" in line)
    assert sum("4096 × 4096" in line for line in lines[:announced]) == 1
    assert sum("4096 × 4096" in line for line in lines[announced:]) >= 1


def test_the_full_length_is_not_begun_after_a_failure(engines, type_in):
    failure = Failure(FailureKind.TOO_LARGE, "Too large.")

    def script(_, request):
        if request.size == 4096:
            return [RunFailed(run_id=request.run_id, failure=failure)]
        return run_events(request)

    engines.scripts[RunWorkload] = script
    status, output, _ = type_in("preset", "gt1030", "--full-length", "--device", "cpu")
    assert status == 1
    assert len(asked(engines)) == 3
    assert "4096" in output  # the published rows stand without this PC
