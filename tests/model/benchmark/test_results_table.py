from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.run_messages import RunFinished, RunPhaseChanged, RunWorkload
from gpu_studio.model.benchmark.results_table import ResultsTable
from tests.fakes.pc import gt_1030
from tests.fakes.run_answers import batch, run_events, started

if TYPE_CHECKING:
    from gpu_studio.model.studio import Studio


class Runs:
    """As much of a benchmark as the table looks at."""

    def __init__(self) -> None:
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
        return run

    def finish(self, run: Run, **changes: Any) -> None:
        for event in run_events(run.request, **changes):
            run.apply(event)


@pytest.fixture
def runs(qapp: object) -> Runs:
    return Runs()


@pytest.fixture
def inventory() -> object:
    return gt_1030()


@pytest.fixture
def table(runs: Runs, ready_studio: Studio) -> ResultsTable:
    return ResultsTable(runs, ready_studio.board)


def row(table: ResultsTable, number: int) -> dict[str, str]:
    sheet = table.sheet
    texts = [cell.text.replace("\u202f", " ") for cell in sheet.rows[number]]
    return dict(zip(sheet.head, texts, strict=True))


def test_a_run_is_a_row_from_its_beginning_to_its_stamp(runs: Runs, table: ResultsTable) -> None:
    run = runs.begin(device="cuda:0")
    # What is the same in every row, and what nothing can be compared with, has no column.
    assert row(table, 0) == {"Size": "512", "GT 1030": "–", "Trust": "… waiting"}
    run.apply(started(run.request))
    run.apply(RunPhaseChanged(run_id="0", phase="warm-up"))
    assert row(table, 0)["Trust"] == "… warm-up"
    run.apply(batch(run.request, (0.001, 0.002, 0.003), spent_s=0.1))
    assert row(table, 0)["GT 1030"] == "2.00 ms"
    runs.finish(run)
    assert row(table, 0)["GT 1030"] == "226 µs"
    assert row(table, 0)["Trust"].startswith("✔ checked, spread ")


def test_a_size_is_a_row_with_the_medians_of_all_devices(runs: Runs, table: ResultsTable) -> None:
    on_cpu, on_card, with_copies = (
        runs.begin(512, device, transfers=copies)
        for device, copies in (("cpu", False), ("cuda:0", False), ("cuda:0", True))
    )
    other = runs.begin(64, "cuda:0")
    assert table.sheet.head == ("Size", "CPU", "GT 1030", "GT 1030 + copies", "Faster", "Trust")
    assert table.sheet.numbers == (0, 1, 2, 3, 4)
    for run, seconds in ((on_cpu, 1.2), (on_card, 1.0), (with_copies, 1.1)):
        assert row(table, 0)["Trust"] == "… waiting"
        runs.finish(run, turns="turns", rounds_s=(seconds,) * 12)
    assert [row(table, 1)[title] for title in ("CPU", "GT 1030")] == ["–", "–"]
    assert row(table, 0)["Faster"] == "GT 1030 1.2 ×"
    # A median is its own run; elsewhere the latest speaks for its row.
    cells = table.sheet.rows[0]
    assert [cell.value for cell in cells[:4]] == [with_copies, on_cpu, on_card, with_copies]
    assert [cell.device for cell in cells[:3]] == ["", "cpu", "cuda:0"]
    assert table.sheet.runs == [on_cpu, on_card, with_copies, other]


def test_work_that_is_measured_again_hides_no_run(runs: Runs, table: ResultsTable) -> None:
    every = [runs.begin(512, device) for device in ("cpu", "cuda:0", "cpu", "cuda:0")]
    every += [runs.begin(512, "cpu", recording=name) for name in ("another PC", "a third")]
    every.append(runs.begin(512, "cpu"))
    every[-1].is_without_pytorch = True
    assert {*table.sheet.runs} == {*every}
    assert len(table.sheet.rows) == 4
    titles = ("CPU", "GT 1030", "CPU, recorded", "CPU, recorded", "CPU, NumPy")
    assert table.sheet.head[1:6] == titles


def test_a_wrong_result_is_reported_before_a_doubt(runs: Runs, table: ResultsTable) -> None:
    runs.finish(runs.begin(device="cpu"), throttled=True)
    runs.finish(runs.begin(device="cuda:0"), verified=False)
    assert row(table, 0)["Trust"].startswith("▲ wrong result")


# ── in another order ──────────────────────────────────────────────────────────────────────────


def sizes(table: ResultsTable) -> list[int]:
    return [run.request.size for run in table.sheet.runs]


def test_a_run_under_way_stays_below_and_takes_its_place_when_it_is_over(
    runs: Runs, table: ResultsTable
) -> None:
    table.sort("CPU")
    runs.finish(runs.begin(1024))
    running = runs.begin(64)
    running.apply(batch(running.request, (1e-9,), spent_s=0.1))
    assert sizes(table) == [1024, 64]
    runs.finish(running)
    assert sizes(table) == [64, 1024]
    assert table.sheet.head == ("Size", "CPU ↑", "Trust")
    table.sort("CPU")
    assert (sizes(table), table.sheet.head[1]) == ([1024, 64], "CPU ↓")
    runs.begin(32)
    assert sizes(table) == [1024, 64, 32], "without a number it stays below"
    table.sort("CPU")
    assert (sizes(table), table.sheet.head[1]) == ([1024, 64, 32], "CPU")
