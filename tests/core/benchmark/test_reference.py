from typing import Any

import pytest

from gpu_studio.core.benchmark.reference import PublishedTable, experiment_rows, published_table
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from tests.fakes.run_answers import finished


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


def here(table: PublishedTable, *results: RunFinished) -> list[list[str]]:
    rows = experiment_rows(table, results, ("cpu", "cuda:0"))
    return [[cell.replace("\u202f", " ") for cell in row[4:]] for row in rows]


def test_this_pc_beside_the_table_is_scaled_to_its_iterations_by_the_latest_run(
    table: PublishedTable,
) -> None:
    first, *_ = experiment_rows(table, [], ("cpu",))
    plain = [cell.replace("\u202f", " ") for cell in first]
    assert plain == ["512 × 512", "512", "64.0 ms", "788 ms", "–", "–"]
    results = [
        result(512, "cpu", 9.0), result(512, "cpu", 1e-3), result(512, "cuda:0", 2e-3),
        result(2048, "cpu", 0.01),
    ]  # fmt: skip
    assert here(table, *results) == [["≈ 512 ms", "≈ 1.02 s"], ["≈ 20.5 s", "–"], ["–", "–"]]


def test_other_work_is_not_set_beside_it(table: PublishedTable) -> None:
    others = [
        result(512, "cpu", 1.0, dtype="float32"), result(512, "cpu", 1.0, workload="matmul"),
        result(64, "cpu", 1.0), result(512, "cuda:0", 1.0, transfers=True),
        result(512, "cpu", 1.0, cache="cold"),
    ]  # fmt: skip
    assert here(table, *others) == [["–", "–"]] * 3
