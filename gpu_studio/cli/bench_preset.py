"""``gpu-studio bench --preset gt1030``: this PC beside a published table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.bench import BenchRequest, addresses, exit_status, export, plans, with_engine
from gpu_studio.cli.bench_recording import Recorder
from gpu_studio.cli.screen import TerminalTable, note, say
from gpu_studio.core.benchmark.reference import (
    experiment,
    experiment_rows,
    full_length,
    full_length_sentence,
    published_table,
)
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpu_studio.cli.bench import BenchRuns
    from gpu_studio.core.benchmark.history import History
    from gpu_studio.core.benchmark.reference import PublishedTable
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.run_messages import RunFinished


def run_preset(
    log_path: Path,
    *,
    devices: Sequence[str] | None,
    budget_s: float,
    in_full_length: bool,
    sustained: bool,
    as_json: bool,
    kept: History | None,
    export_to: Path | None,
    record_to: Path | None,
) -> int:
    """Run the experiment and print it beside the published results; return the exit status.

    Raises:
        StudioError: no such device, or the engine does not start.
    """
    table = published_table()
    tell = note if as_json else say
    recorder = Recorder(log_path, as_json=as_json, path=record_to)

    def work(runs: BenchRuns, description: EngineDescribed) -> None:
        where = tuple(devices or addresses(description))
        asked = BenchRequest(workload=table.workload, dtypes=(table.dtype,), devices=where)
        plans(asked, description)  # raises if this engine cannot run them
        recorder.begin(description, {table.workload}, set(where))
        tell(f"{table.source}: {table.cpu} and {table.card}. {table.method}")
        runs.make(experiment(table, where, budget_s, sustained=sustained))
        if in_full_length:
            _make_in_full(runs, table, tell)
        if export_to is not None:
            export(runs.runs, description, export_to)
        recorder.save(runs.runs)

    runs, interrupted = with_engine(work, log_path, as_json=as_json, kept=kept)
    if not as_json:
        say()
        for line in experiment_lines(table, runs.results):
            say(line)
    return exit_status(runs, interrupted=interrupted)


def _make_in_full(runs: BenchRuns, table: PublishedTable, tell: Callable[[str], None]) -> None:
    """Run as many iterations as the table, unless a budgeted run failed."""
    if len(runs.results) == len(runs.runs):
        requests = full_length(table, runs.results, len(runs.runs) + 1)
        tell(full_length_sentence(table, requests))
        runs.make_all(requests)


def experiment_lines(table: PublishedTable, results: Sequence[RunFinished]) -> list[str]:
    """Return the published table beside this PC, one line for each device and size."""
    layout = TerminalTable((("size", -13), ("iterations", -10), ("time", -9), ("device", 0)))
    lines = [layout.heading]
    names = {result.device: result.device_name for result in results}
    rows = {row.published.size: row for row in experiment_rows(table, results)}
    for published in table.rows:
        size, iterations = format_size(published.size), str(published.iterations)
        for name, seconds in ((table.cpu, published.cpu_s), (table.card, published.card_s)):
            lines.append(layout.row([size, iterations, format_duration(seconds),
                                     f"{name} (published)"]))  # fmt: skip
        row = rows.get(published.size)
        for device, seconds in row.iterations_s.items() if row else ():
            label = row.label(device) if row else ""
            lines.append(layout.row([size, iterations, format_duration(seconds),
                                     f"{names[device]} (this PC, {label})"]))  # fmt: skip
    return lines
