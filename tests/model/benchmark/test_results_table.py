from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtTest import QAbstractItemModelTester

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import (
    Limit,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunWorkload,
)
from gpu_studio.model.benchmark.results_table import (
    ADDRESS_ROLE,
    RUN_ORDER,
    Column,
    ResultsTable,
    SortedResults,
)
from tests.fakes.pc import gt_1030
from tests.fakes.run_answers import batch, run_events, started

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.studio import Studio


class Runs(QObject):
    """As much of a benchmark as the table looks at."""

    run_begun = Signal(object)
    run_changed = Signal(object)
    runs_cleared = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    @property
    def results(self) -> list[RunFinished]:
        return [run.result for run in self.runs if run.result is not None]

    def title_of(self, workload: str) -> str:
        return workload.title()

    def begin(self, size: int = 512, device: str = "cpu", **changes: Any) -> Run:
        request = RunWorkload(
            run_id=f"{len(self.runs)}", workload="elementwise", device=device, size=size,
            dtype="float32",
        )  # fmt: skip
        run = Run(request)
        self.runs.append(run)
        self.run_begun.emit(run)
        return run

    def tell(self, run: Run, event: Event) -> None:
        run.apply(event)
        self.run_changed.emit(run)

    def finish(self, run: Run, **changes: Any) -> None:
        for event in run_events(run.request, **changes):
            run.apply(event)
        self.run_changed.emit(run)


@pytest.fixture
def runs(qapp: object) -> Runs:
    return Runs()


@pytest.fixture
def inventory() -> object:
    return gt_1030()


@pytest.fixture
def table(runs: Runs, ready_studio: Studio) -> ResultsTable:
    table = ResultsTable(runs, ready_studio.board, runs)
    QAbstractItemModelTester(table, QAbstractItemModelTester.FailureReportingMode.Fatal, table)
    return table


def texts(table: ResultsTable, row: int) -> list[str]:
    return [
        table.index(row, column).data().replace("\u202f", " ")
        for column in range(table.columnCount())
    ]


def test_a_run_is_a_row_from_its_beginning_to_its_stamp(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin(device="cuda:0")
    assert texts(table, 0) == [
        "Elementwise", "512", "float32", "GT 1030", "", "–", "–", "–", "–", "–", "–", "… waiting",
    ]  # fmt: skip
    run.apply(started(run.request))
    runs.tell(run, RunPhaseChanged(run_id="0", phase="warm-up"))
    assert texts(table, 0)[Column.STAMP] == "… warm-up"
    runs.tell(run, batch(run.request, (0.001, 0.002, 0.003), spent_s=0.1))
    assert texts(table, 0)[Column.MEDIAN : Column.THROUGHPUT] == ["2.00 ms", "50 %", "3"]
    runs.finish(run)
    assert texts(table, 0)[Column.MEDIAN :] == [
        "226 µs", "0.6 %", "43", "2.32 GB/s", "–", "–", "✔ verified",
    ]  # fmt: skip


def test_only_the_changed_row_is_told(runs: Runs, table: ResultsTable, qtbot: Any) -> None:
    first, second = runs.begin(64), runs.begin(128)
    with qtbot.waitSignal(table.dataChanged) as changed:
        runs.finish(second)
    top_left, bottom_right = changed.args[:2]
    assert (top_left.row(), bottom_right.row()) == (1, 1)
    assert (top_left.column(), bottom_right.column()) == (0, table.columnCount() - 1)
    with qtbot.assertNotEmitted(table.dataChanged):
        runs.run_changed.emit(first)


def test_the_speed_up_comes_with_the_cpus_result(runs: Runs, table: ResultsTable) -> None:
    card, other = runs.begin(device="cuda:0"), runs.begin(64, device="cuda:0")
    runs.finish(card, turns="turns", rounds_s=(1.0,) * 12)
    runs.finish(other)
    assert texts(table, 0)[Column.SPEED_UP] == "–"
    runs.finish(runs.begin(device="cpu"), turns="turns", rounds_s=(1.2,) * 12)
    assert [texts(table, row)[Column.SPEED_UP] for row in range(3)] == ["1.2 ×", "–", "–"]


def test_a_doubt_and_a_failure_show_in_the_stamp(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin(), throttled=True)
    failed = runs.begin(4096)
    failed.apply(started(failed.request))
    failure = Failure(FailureKind.TOO_LARGE, "It needs 64 GiB, 3 GiB are free.")
    runs.tell(failed, RunFailed(run_id="1", failure=failure))
    assert texts(table, 0)[Column.STAMP] == "▲ throttled"
    assert texts(table, 1)[Column.STAMP] == "✖ too large"
    assert failure.message in table.index(1, 0).data(Qt.ItemDataRole.ToolTipRole)


def test_a_row_tells_all_facts_as_plain_text(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin(), device_name='<img src="x">&Co')
    tip = table.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "95\u202f% interval" in tip
    assert "40 samples of 4 calls" in tip
    assert "&lt;img src=&quot;x&quot;&gt;&amp;Co" in tip


def test_numbers_and_their_heads_are_aligned_alike(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin())
    horizontal = Qt.Orientation.Horizontal
    for column in Column:
        cell = table.index(0, column).data(Qt.ItemDataRole.TextAlignmentRole)
        head = table.headerData(column, horizontal, Qt.ItemDataRole.TextAlignmentRole)
        assert cell == head
    right = Qt.AlignmentFlag.AlignRight
    assert table.index(0, Column.MEDIAN).data(Qt.ItemDataRole.TextAlignmentRole) & right
    assert not table.index(0, Column.STAMP).data(Qt.ItemDataRole.TextAlignmentRole) & right


def test_only_a_device_has_an_address(runs: Runs, table: ResultsTable) -> None:
    runs.begin(device="cuda:0")
    assert table.index(0, Column.DEVICE).data(ADDRESS_ROLE) == "cuda:0"
    assert table.index(0, Column.SIZE).data(ADDRESS_ROLE) is None


def test_clear_leaves_no_row(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin()
    assert table.run(0) is run
    runs.runs_cleared.emit()
    assert table.rowCount() == 0


def test_the_mode_and_the_ceiling_are_cells(runs: Runs, table: ResultsTable) -> None:
    request = RunWorkload(
        run_id="0", workload="train_step", device="cuda:0", size=64, dtype="float32",
        options={"way": "batch_by_batch"}, cache="cold", transfers=True,
    )  # fmt: skip
    run = Run(request)
    runs.runs.append(run)
    runs.run_begun.emit(run)
    assert texts(table, 0)[Column.MODE] == "batch by batch, cold cache, with copies"
    runs.finish(run, share_of_ceiling=0.74, size_text="batch {size}")
    assert texts(table, 0)[Column.CEILING] == "74 %"


def test_what_a_cache_does_is_no_share_of_the_memory(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin()
    runs.finish(
        run, share_of_ceiling=38.75, ceiling="memory bandwidth, 4.10 GB/s", limit=Limit.MEMORY
    )
    assert texts(table, 0)[Column.CEILING] == "cached"


def test_one_sample_has_no_spread(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin()
    runs.tell(run, started(run.request))
    runs.tell(run, batch(run.request, (0.5,), spent_s=0.5))
    assert texts(table, 0)[Column.IQR] == "–"
    runs.tell(run, batch(run.request, (0.6,), spent_s=0.5))
    assert texts(table, 0)[Column.IQR] != "–"


def test_a_size_is_written_as_its_workload_does(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin(64)
    runs.tell(run, started(run.request, size_text="batch of {size}"))
    assert texts(table, 0)[Column.SIZE] == "batch of 64"


# ── in another order ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def rows(table: ResultsTable) -> SortedResults:
    rows = SortedResults(table, table)
    QAbstractItemModelTester(rows, QAbstractItemModelTester.FailureReportingMode.Fatal, rows)
    return rows


def sizes(rows: SortedResults) -> list[int]:
    return [run.request.size for run in rows.runs]


def test_rows_are_sorted_by_number_and_not_by_text(runs: Runs, rows: SortedResults) -> None:
    for size in (512, 64, 4096, 1024):
        runs.finish(runs.begin(size))
    assert sizes(rows) == [512, 64, 4096, 1024]
    rows.sort(Column.SIZE)
    assert sizes(rows) == [64, 512, 1024, 4096]
    rows.sort(Column.MEDIAN, Qt.SortOrder.DescendingOrder)  # 16.8 ms, 1.05 ms, 262 µs, 4.10 µs
    assert sizes(rows) == [4096, 1024, 512, 64]
    assert rows.run(rows.index(0, 0)).request.size == 4096
    rows.sort(RUN_ORDER)
    assert sizes(rows) == [512, 64, 4096, 1024]


def test_the_head_says_what_it_is_sorted_by(runs: Runs, rows: SortedResults) -> None:
    def head(column: Column) -> str:
        return str(rows.headerData(column, Qt.Orientation.Horizontal))

    assert head(Column.SIZE) == "Size"
    rows.sort(Column.SIZE)
    assert (head(Column.SIZE), head(Column.MEDIAN)) == ("Size ↑", "Median")
    rows.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert head(Column.SIZE) == "Size ↓"


def test_a_run_under_way_stays_below_and_takes_its_place_when_it_is_over(
    runs: Runs, rows: SortedResults
) -> None:
    rows.sort(Column.MEDIAN)
    runs.finish(runs.begin(1024))
    running = runs.begin(64)
    runs.tell(running, batch(running.request, (1e-9,), spent_s=0.1))
    assert sizes(rows) == [1024, 64]
    runs.finish(running)
    assert sizes(rows) == [64, 1024]
