"""The runs as a table, a row for each size, with the median of each device."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.benchmark.ceilings import share_text
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import RunState, describe_run, sign_of
from gpu_studio.core.benchmark.trust import doubts_of, spread_of
from gpu_studio.core.benchmark.verdict import reference_of, speed_up
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.run_messages import SQUARE
from gpu_studio.core.units import format_duration, format_rate
from gpu_studio.model.benchmark.benchmark import run_label
from gpu_studio.model.devices.device_board import label_of
from gpu_studio.model.text_rows import Cell

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.claim import Claim
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard

_NOTHING = "–"
_TEXTS = ("Workload", "Precision", "Mode", "Trust")
_Key = float | str | None


class _Medians(NamedTuple):
    """A column of medians: a device, without or with copies, here or of a recording.

    PyTorch's CPU and NumPy's are two.
    """

    address: str
    transfers: bool
    recording: str | None
    by_numpy: bool


class _Row(NamedTuple):
    """The runs of one work, at most one in each column of medians, and their cells by column."""

    runs: dict[_Medians, Run]
    cells: dict[str | _Medians, tuple[Cell, _Key]]


class Sheet(NamedTuple):
    """The shown table.

    Attributes:
        head: the titles of the columns; the one that sorts has an arrow.
        numbers: the indexes of the columns of numbers.
        rows: the cells; each means a run: a median its own, any other the latest of its row.
        runs: all runs in the order of the rows, and in a row in that of the devices.
    """

    head: tuple[str, ...]
    numbers: tuple[int, ...]
    rows: list[tuple[Cell, ...]]
    runs: list[Run]


def facts_of(run: Run, board: DeviceBoard, benchmark: Benchmark) -> list[str]:
    """Return all that is known about a run, a sentence a line."""
    title = benchmark.title_of(run.request.workload)
    lines = describe_run(run, run_label(run, board.rows), title)
    if (result := run.result) is not None:
        share = share_text(result)
        of_peak = f", {share} of this device's peak" if share else ""
        lines.append(f"{format_rate(result.throughput, result.throughput_unit)}{of_peak}.")
    return lines


class ResultsTable:
    """A row for each size of a `Benchmark`, oldest first or sorted by a column.

    A work that is measured again has a row of its own, so that no run is hidden by another. A
    column that would say the same in each row is left out.
    """

    def __init__(self, benchmark: Benchmark, board: DeviceBoard) -> None:
        self._benchmark, self._board = benchmark, board
        self._column, self._is_down = "", False
        self._claims: dict[Run, tuple[int, Claim | None]] = {}

    def sort(self, title: str) -> None:
        """Sort by a column upwards, the next time downwards, then in the order of the runs."""
        if title != self._column or not title:
            self._column, self._is_down = title, False
        elif self._is_down:
            self._column = ""
        else:
            self._is_down = True

    @property
    def sheet(self) -> Sheet:
        """The present table."""
        runs, results = self._benchmark.runs, self._benchmark.results
        self._claims = {run: known for run in runs if (known := self._claims.get(run)) is not None}
        medians: dict[_Medians, str] = {}
        rows: list[dict[_Medians, Run]] = []
        of_work: dict[tuple[object, ...], list[dict[_Medians, Run]]] = {}
        for run in runs:
            request = run.request
            by_numpy = run.is_without_pytorch and is_cpu(request.device)
            column = _Medians(request.device, request.transfers, run.recording, by_numpy)
            mode = " + copies" if column.transfers else ", NumPy" if by_numpy else ""
            medians.setdefault(column, f"{run_label(run, self._board.rows)}{mode}")
            alike = of_work.setdefault(_work(run), [])
            row = next((one for one in alike if column not in one), None)
            if row is None:
                rows.append(row := {})
                alike.append(row)
            row[column] = run
        requests = [run.request for run in runs]
        spare = {
            "Workload": len({one.workload for one in requests}) < 2,
            "Precision": len({one.dtype for one in requests}) < 2,
            "Mode": not any(mode_words(run.request, with_copies=False) for run in runs),
            "Faster": len({one.device for one in requests}) < 2,
        }
        named = [(title, title) for title in ("Workload", "Size", "Precision", "Mode")]
        pairs: list[tuple[str | _Medians, str]] = [
            *named, *medians.items(), ("Faster", "Faster"), ("Trust", "Trust"),
        ]  # fmt: skip
        columns = {column: title for column, title in pairs if not spare.get(title)}
        sorting = next((one for one, title in columns.items() if title == self._column), None)
        made = [_Row(row, self._cells(row, medians, results)) for row in rows]
        if sorting is not None:
            made = self._sorted(made, sorting)
        arrow = " ↓" if self._is_down else " ↑"
        return Sheet(
            tuple(f"{title}{arrow if one == sorting else ''}" for one, title in columns.items()),
            tuple(at for at, title in enumerate(columns.values()) if title not in _TEXTS),
            [tuple(row.cells[column][0] for column in columns) for row in made],
            [row.runs[column] for row in made for column in medians if column in row.runs],
        )

    def _sorted(self, rows: list[_Row], column: str | _Medians) -> list[_Row]:
        """Return the rows in their order; a run without a number yet stays below."""

        def key(row: _Row) -> _Key:
            return row.cells[column][1]

        known = [row for row in rows if key(row) is not None]
        known.sort(key=key, reverse=self._is_down)  # type: ignore[arg-type]  # none is None
        return [*known, *(row for row in rows if key(row) is None)]

    def _cells(
        self, row: dict[_Medians, Run], medians: dict[_Medians, str], results: list[RunFinished]
    ) -> dict[str | _Medians, tuple[Cell, _Key]]:
        """Return each cell with its sort key.

        A current run has no number as its key, so that its row does not move around.
        """
        runs = [*row.values()]
        run, latest = runs[0], ([one for one in runs if one.has_begun] or runs[:1])[-1]
        faster = self._fastest(runs, results)
        size = run.size_label if run.size_text != SQUARE else str(run.request.size)
        texts: dict[str, tuple[str, _Key]] = {
            "Size": (size, run.request.size),
            "Faster": (
                (self._faster_words(*faster, results), faster[0].said_ratio)
                if faster else (_NOTHING, None)
            ),
        }  # fmt: skip
        for title, text in (
            ("Workload", self._benchmark.title_of(run.request.workload)),
            ("Precision", run.request.dtype),
            ("Mode", mode_words(run.request, with_copies=False)),
            ("Trust", sign_of(max(runs, key=_concern))),
        ):
            texts[title] = text, text
        return {
            **{title: (Cell(text, value=latest), key) for title, (text, key) in texts.items()},
            **{column: _median(column, row.get(column), latest) for column in medians},
        }

    def _fastest(self, runs: list[Run], results: list[RunFinished]) -> tuple[Claim, Run] | None:
        """Return the fastest card's comparison with the CPU; without copies if it has both."""
        own = [run.result for run in runs if run.result is not None]
        found = [
            (claim, run) for run in runs if (claim := self._claim(run, own, results)) is not None
        ]
        return max(
            found, key=lambda one: (not one[1].request.transfers, one[0].ratio), default=None
        )

    def _claim(self, run: Run, own: list[RunFinished], results: list[RunFinished]) -> Claim | None:
        if run.result is None:
            return None
        known = self._claims.get(run)
        if known is None or known[0] != len(results):  # another result may be compared with it
            claim = speed_up(run.result, own) or speed_up(run.result, results)
            known = self._claims[run] = len(results), claim
        return known[1]

    def _faster_words(self, claim: Claim, run: Run, results: list[RunFinished]) -> str:
        if not claim.sign:
            return claim.words
        rows = self._board.rows
        cpu = reference_of(run.request.device, [result.device for result in results])
        return f"{run_label(run, rows) if claim.sign > 0 else label_of(cpu, rows)} {claim.times}"


def _median(column: _Medians, run: Run | None, latest: Run) -> tuple[Cell, _Key]:
    if run is None or run.summary is None:
        return Cell(_NOTHING, column.address if run is not None else "", run or latest), None
    median_s = run.summary.median_s
    text = format_duration(median_s)
    return Cell(text, column.address, run), median_s if run.state.is_over else None


def _work(run: Run) -> tuple[object, ...]:
    return run.request.kind, run.request.size, run.recording


def _concern(run: Run) -> tuple[int, float]:
    """Return how much a run matters to its row: one under way, then what is wrong with others."""
    if run.state is RunState.FAILED:
        return 6, 0.0
    if not run.state.is_over:
        return 5 if run.has_begun else 4, 0.0
    if run.result is None:
        return 2, 0.0
    is_doubted = bool(doubts_of(run.result))
    return 3 if run.result.verified is False else int(is_doubted), spread_of(run.result)
