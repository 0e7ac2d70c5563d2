from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtTest import QAbstractItemModelTester

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.run_messages import (
    RunFinished,
    RunPhaseChanged,
    RunWorkload,
)
from gpu_studio.model.benchmark.results_table import (
    ADDRESS_ROLE,
    Column,
    ResultsTable,
    SortedResults,
    facts_of,
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

    def begin(
        self,
        size: int = 512,
        device: str = "cpu",
        *,
        recording: str | None = None,
        transfers: bool = False,
    ) -> Run:
        request = RunWorkload(
            run_id=f"{len(self.runs)}", workload="elementwise", device=device, size=size,
            dtype="float32", transfers=transfers,
        )  # fmt: skip
        run = Run(request)
        run.recording = recording
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


# The first device's column.
MEDIAN = len(Column)


def texts(table: ResultsTable, row: int) -> list[str]:
    return [
        table.index(row, column).data().replace("\u202f", " ")
        for column in range(table.columnCount())
    ]


def test_a_run_is_a_row_from_its_beginning_to_its_stamp(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin(device="cuda:0")
    assert texts(table, 0) == [
        "Elementwise", "512", "float32", "", "–", "… waiting", "–",
    ]  # fmt: skip
    run.apply(started(run.request))
    runs.tell(run, RunPhaseChanged(run_id="0", phase="warm-up"))
    assert texts(table, 0)[Column.STAMP] == "… warm-up"
    runs.tell(run, batch(run.request, (0.001, 0.002, 0.003), spent_s=0.1))
    assert texts(table, 0)[MEDIAN] == "2.00 ms"
    runs.finish(run)
    assert texts(table, 0)[Column.FASTER :] == ["–", "✔ verified", "226 µs"]


def heads(table: ResultsTable) -> list[str]:
    return [
        table.headerData(section, Qt.Orientation.Horizontal)
        for section in range(MEDIAN, table.columnCount())
    ]


def test_a_size_is_a_row_with_the_medians_of_all_devices(runs: Runs, table: ResultsTable) -> None:
    on_cpu, on_card, with_copies = (
        runs.begin(512, device, transfers=copies)
        for device, copies in (("cpu", False), ("cuda:0", False), ("cuda:0", True))
    )
    other = runs.begin(64, "cuda:0")
    assert table.rowCount() == 2
    assert heads(table) == ["CPU", "GT 1030", "GT 1030 + copies"]
    for run, seconds in ((on_cpu, 1.2), (on_card, 1.0), (with_copies, 1.1)):
        assert "… waiting" in texts(table, 0)
        runs.finish(run, turns="turns", rounds_s=(seconds,) * 12)
    assert [texts(table, 1)[column] for column in (MEDIAN, MEDIAN + 1)] == ["–", "–"]
    assert all(text != "–" for text in texts(table, 0)[MEDIAN:])
    # A median is its own run; elsewhere the latest speaks for its row.
    columns = (MEDIAN, MEDIAN + 1, MEDIAN + 2, Column.SIZE)
    assert [table.run(0, column) for column in columns] == [
        on_cpu, on_card, with_copies, with_copies,
    ]  # fmt: skip
    assert table.runs(0) == [on_cpu, on_card, with_copies]
    assert table.runs(1) == [other]
    tips = [table.index(0, column).data(Qt.ItemDataRole.ToolTipRole) for column in columns]
    assert [tip.count("interval") for tip in tips] == [1, 1, 1, 3]


def test_work_that_is_measured_again_hides_no_run(runs: Runs, table: ResultsTable) -> None:
    every = [runs.begin(512, device) for device in ("cpu", "cuda:0", "cpu", "cuda:0")]
    every.append(runs.begin(512, "cpu", recording="another PC"))
    assert [table.runs(row) for row in range(3)] == [every[:2], every[2:4], every[4:]]
    assert heads(table) == ["CPU", "GT 1030", "CPU, recorded"]


def test_only_the_changed_row_is_reported(runs: Runs, table: ResultsTable, qtbot: Any) -> None:
    first, second = runs.begin(64), runs.begin(128)
    with qtbot.waitSignal(table.dataChanged) as changed:
        runs.finish(second)
    top_left, bottom_right = changed.args[:2]
    assert (top_left.row(), bottom_right.row()) == (1, 1)
    assert (top_left.column(), bottom_right.column()) == (0, table.columnCount() - 1)
    with qtbot.assertNotEmitted(table.dataChanged):
        runs.run_changed.emit(first)


def test_a_wrong_result_is_reported_before_a_doubt(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin(device="cpu"), throttled=True)
    runs.finish(runs.begin(device="cuda:0"), verified=False)
    assert texts(table, 0)[Column.STAMP].startswith("▲ wrong result")


def test_a_row_reports_all_facts_as_plain_text(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin(), device_name='<img src="x">&Co')
    tip = table.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
    assert "95\u202f% interval" in tip
    assert "40 samples of 4 calls" in tip
    assert "&lt;img src=&quot;x&quot;&gt;&amp;Co" in tip


def test_numbers_and_their_heads_are_aligned_alike(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin())
    horizontal = Qt.Orientation.Horizontal
    for column in range(table.columnCount()):
        cell = table.index(0, column).data(Qt.ItemDataRole.TextAlignmentRole)
        head = table.headerData(column, horizontal, Qt.ItemDataRole.TextAlignmentRole)
        assert cell == head
    right = Qt.AlignmentFlag.AlignRight
    assert table.index(0, MEDIAN).data(Qt.ItemDataRole.TextAlignmentRole) & right
    assert not table.index(0, Column.STAMP).data(Qt.ItemDataRole.TextAlignmentRole) & right


def test_only_a_median_has_an_address(runs: Runs, table: ResultsTable) -> None:
    runs.begin(device="cuda:0")
    assert table.index(0, MEDIAN).data(ADDRESS_ROLE) == "cuda:0"
    assert table.index(0, Column.SIZE).data(ADDRESS_ROLE) is None


def test_the_mode_is_a_cell_and_the_share_of_the_peak_a_fact(
    runs: Runs, table: ResultsTable
) -> None:
    request = RunWorkload(
        run_id="0", workload="train_step", device="cuda:0", size=64, dtype="float32",
        options={"way": "batch_by_batch"}, cache="cold", transfers=True,
    )  # fmt: skip
    run = Run(request)
    runs.runs.append(run)
    runs.run_begun.emit(run)
    assert texts(table, 0)[Column.MODE] == "batch by batch, cold cache"
    runs.finish(run, share_of_ceiling=0.74, size_text="batch {size}")
    facts = facts_of(run, table._board, runs)
    assert "74 % of this device's peak" in facts[-1].replace("\u202f", " ")


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
    return [run.request.size for run in rows.runs()]


def test_the_head_says_what_it_is_sorted_by(runs: Runs, rows: SortedResults) -> None:
    def head(column: int) -> str:
        return str(rows.headerData(column, Qt.Orientation.Horizontal))

    runs.begin()
    assert head(Column.SIZE) == "Size"
    rows.sort(Column.SIZE)
    assert (head(Column.SIZE), head(MEDIAN)) == ("Size ↑", "CPU")
    rows.sort(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert head(Column.SIZE) == "Size ↓"


def test_a_run_under_way_stays_below_and_takes_its_place_when_it_is_over(
    runs: Runs, rows: SortedResults
) -> None:
    rows.sort(MEDIAN)
    runs.finish(runs.begin(1024))
    running = runs.begin(64)
    runs.tell(running, batch(running.request, (1e-9,), spent_s=0.1))
    assert sizes(rows) == [1024, 64]
    runs.finish(running)
    assert sizes(rows) == [64, 1024]
