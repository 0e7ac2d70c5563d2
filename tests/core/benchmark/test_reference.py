from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpu_studio.core import json_resource
from gpu_studio.core.benchmark.reference import (
    PublishedTable,
    experiment,
    experiment_rows,
    published_table,
)
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.resources import MissingResourceError
from tests.fakes.run_answers import changed, finished


@pytest.fixture
def table() -> PublishedTable:
    return published_table()


def result(size: int, device: str, median_s: float, **changes: Any) -> RunFinished:
    asked = {"workload": "elementwise", "dtype": "float16", **changes}
    request = RunWorkload(run_id="1", device=device, size=size, **asked)
    return finished(request, (median_s,) * 10)


def test_the_table_is_reported_with_its_source(table: PublishedTable) -> None:
    assert table.source == (
        "“How can I run any code on my GPU, instead on CPU?” by Radosław Śmigielski, 2025-03-01"
    )
    assert table.dtype == "float16"
    assert [row.size for row in table.rows] == [512, 2048, 4096]
    # its loop runs as often as the matrix has rows
    assert all(row.iterations == row.size for row in table.rows)
    # the CPU won in each of its rows, and the whole took 13 minutes
    assert all(row.cpu_s < row.card_s for row in table.rows)
    row = table.row(2048)
    assert row is not None
    assert (row.cpu_s, row.card_s) == (30.193, 45.506)
    assert table.row(1024) is None


def test_the_experiment_is_the_table_s_work_in_budgeted_runs(
    table: PublishedTable,
) -> None:
    requests = experiment(table, ("cpu", "cuda:0"), 0.5).requests()
    assert [(run.size, run.device) for run in requests] == [
        (size, device) for size in (512, 2048, 4096) for device in ("cpu", "cuda:0")
    ]
    assert {(run.workload, run.dtype, run.budget_s, run.naive) for run in requests} == {
        ("elementwise", "float16", 0.5, True)
    }


def test_this_pc_beside_the_table_is_scaled_and_says_so(table: PublishedTable) -> None:
    results = [result(512, "cpu", 1e-3), result(512, "cuda:0", 2e-3), result(2048, "cpu", 0.01)]
    first, second = experiment_rows(table, results)
    assert first.published.size == 512
    assert first.iterations_s == {"cpu": pytest.approx(0.512), "cuda:0": pytest.approx(1.024)}
    assert second.iterations_s == {"cpu": pytest.approx(20.48)}
    assert first.is_scaled("cpu")
    assert first.label("cpu") == "scaled from 40 calls to 512"


def test_enough_calls_are_not_called_scaled(table: PublishedTable) -> None:
    many = msgspec.structs.replace(result(512, "cpu", 1e-3), samples=100, calls_per_sample=10)
    (row,) = experiment_rows(table, [many])
    assert not row.is_scaled("cpu")
    assert row.label("cpu") == "from 1000 calls"


def test_the_time_of_the_full_length_is_that_of_its_calls_together(table: PublishedTable) -> None:
    one_by_one = changed(result(512, "cpu", 1e-3), samples=128, calls_per_sample=4, timed_s=0.75)
    (row,) = experiment_rows(table, [one_by_one])
    assert row.iterations_s == {"cpu": 0.75}
    assert row.label("cpu") == "from 512 calls"
    more = msgspec.structs.replace(one_by_one, samples=129)
    (row,) = experiment_rows(table, [more])
    assert row.iterations_s == {"cpu": pytest.approx(0.512)}


def test_other_work_is_not_set_beside_it(table: PublishedTable) -> None:
    others = [
        result(512, "cpu", 1.0, dtype="float32"), result(512, "cpu", 1.0, workload="matmul"),
        result(64, "cpu", 1.0), result(512, "cuda:0", 1.0, transfers=True),
    ]  # fmt: skip
    assert experiment_rows(table, others) == []


def test_the_latest_run_of_a_size_counts(table: PublishedTable) -> None:
    (row,) = experiment_rows(table, [result(512, "cpu", 9.0), result(512, "cpu", 1.0)])
    assert row.iterations_s["cpu"] == pytest.approx(512)


def test_a_missing_or_damaged_table_says_which(monkeypatch: Any, tmp_path: Any) -> None:
    with pytest.raises(MissingResourceError, match="nothing"):
        published_table("reference/nothing.json")
    (tmp_path / "t.json").write_text("{}")
    monkeypatch.setattr(json_resource, "resource_path", lambda _: tmp_path / "t.json")
    with pytest.raises(MissingResourceError, match="cannot be read"):
        published_table()
