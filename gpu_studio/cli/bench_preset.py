"""``gpu-studio bench preset gt1030``: this PC beside a published table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.cli.answers import addresses, check_device
from gpu_studio.cli.bench_history import history, keep_run
from gpu_studio.cli.bench_runs import add_measuring, export, started_runs
from gpu_studio.cli.command import Command
from gpu_studio.cli.recorder import Recorder
from gpu_studio.cli.screen import TerminalTable, note, print_line
from gpu_studio.core.benchmark.reference import (
    experiment,
    experiment_rows,
    full_length,
    full_length_sentence,
    published_table,
)
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpu_studio.cli.bench_runs import BenchRuns
    from gpu_studio.core.benchmark.reference import PublishedTable
    from gpu_studio.core.messages.run_messages import RunFinished

_PRESETS = ("gt1030",)
_USUAL_BUDGET_S = 2.0


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Run the experiment and print it beside the published results; return the exit status."""
    table = published_table()
    write_line = note if options.json else print_line
    recorder = Recorder(log_path, as_json=options.json, path=options.record)
    finished = None if options.no_history else partial(keep_run, history())
    with started_runs(log_path, as_json=options.json, finished=finished) as (runs, described):
        devices = tuple(options.device or addresses(described))
        for device in devices:
            check_device(device, described)
        recorder.begin(described, {table.workload}, set(devices))
        write_line(f"{table.source}: {table.cpu} and {table.card}. {table.method}")
        runs.make(experiment(table, devices, options.budget_s, sustained=options.sustained))
        if options.full_length:
            _run_in_full(runs, table, write_line)
        if options.export is not None:
            export(runs.runs, described, options.export)
        recorder.save(runs.runs)
    if not options.json:
        print_line()
        for line in _experiment_lines(table, runs.results):
            print_line(line)
    return runs.exit_status


def _run_in_full(runs: BenchRuns, table: PublishedTable, write_line: Callable[[str], None]) -> None:
    """Run as many iterations as the table, unless a budgeted run failed."""
    if len(runs.results) == len(runs.runs):
        requests = full_length(table, runs.results, len(runs.runs) + 1)
        write_line(full_length_sentence(table, requests))
        runs.make_all(requests)


def _experiment_lines(table: PublishedTable, results: Sequence[RunFinished]) -> list[str]:
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


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=_PRESETS, metavar="|".join(_PRESETS), help="the experiment")
    parser.add_argument(
        "--full-length", action="store_true",
        help="time as many calls as the table; prints first how long that takes",
    )  # fmt: skip
    add_measuring(parser, _USUAL_BUDGET_S)


PART = Command(
    help="compare this PC with a published table",
    about="“The GT 1030 experiment”: compare this PC with a published table.",
    run=_run,
    add_arguments=_add_arguments,
)
