"""Exports runs as CSV, JSON and Markdown, to files and as text to paste.

Every export has the table's contents, including stopped and failed runs; JSON also has every
sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.ceilings import believed_share
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import state_text
from gpu_studio.core.benchmark.trust import trust_sign
from gpu_studio.core.benchmark.verdict import speed_up
from gpu_studio.core.device_name import name_at, pc_of
from gpu_studio.core.statistics import FEWEST_ROUNDS
from gpu_studio.core.texts import csv_line, markdown_table
from gpu_studio.core.units import format_duration, format_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.failure import FailureKind
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
    from gpu_studio.core.texts import Cell


_HEAD = (
    "workload", "size", "dtype", "device", "device_name", "state", "reason", "median_s", "iqr_s",
    "ci95_low_s", "ci95_high_s", "p99_s", "samples", "outliers", "calls_per_sample", "throughput",
    "throughput_unit", "speed_up", "speed_up_claim", "budget_s", "first_call_s", "warm_up_s",
    "elapsed_s", "verified", "verification", "throttled", "other_processes", "share_of_ceiling",
    "ceiling", "options", "cache", "transfers", "naive_printed_s", "peak_allocated_bytes",
    "computed_in", "power_capped", "sustained", "loaded_s",
    "cpu_threads", "torch_version", "recording",
)  # fmt: skip

_READABLE_HEAD = (
    "Workload", "Size", "Precision", "Device", "Median", "IQR", "Samples", "Throughput",
    "Speed-up", "Trust",
)  # fmt: skip
_NUMBERS = (1, 4, 5, 6, 7, 8)


class ExportedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a JSON file; ``result`` is null if it was stopped or failed."""

    request: RunWorkload
    state: str
    result: RunFinished | None
    speed_up: float | None
    speed_up_claim: str | None
    failure_kind: FailureKind | None
    failure: str | None
    recording: str | None
    calls_per_sample: int
    samples_s: tuple[float, ...]


class ExportedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The complete JSON file."""

    program: str
    exported_at: str
    engine: EngineDescribed | None
    runs: tuple[ExportedRun, ...]


def to_csv(runs: Sequence[Run]) -> str:
    """Return runs as CSV with a header, one line each; text cells cannot become formulas."""
    results = results_of(runs)
    lines = [csv_line(_HEAD)]
    for run in runs:
        cells = _cells(run, results)
        lines.append(csv_line(cells[name] for name in _HEAD))
    return "".join(lines)


def to_json(runs: Sequence[Run], engine: EngineDescribed | None, exported_at: str) -> str:
    """Return runs with all their samples as JSON.

    Args:
        runs: the runs to write.
        engine: the present engine's description of itself.
        exported_at: the time in ISO 8601.
    """
    results = results_of(runs)
    exported = ExportedRuns(
        program="GPU Studio",
        exported_at=exported_at,
        engine=engine,
        runs=tuple(
            ExportedRun(
                request=run.request,
                state=run.state.value,
                result=run.result,
                speed_up=_claimed(run, results)[0],
                speed_up_claim=_claimed(run, results)[1],
                failure_kind=run.failure.kind if run.failure else None,
                failure=run.failure.message if run.failure else None,
                recording=run.recording,
                calls_per_sample=run.calls_per_sample,
                samples_s=tuple(run.series.values.tolist()),
            )
            for run in runs
        ),
    )
    return msgspec.json.format(msgspec.json.encode(exported), indent=1).decode()


def to_markdown(runs: Sequence[Run]) -> str:
    """Return runs as a Markdown table in readable units."""
    return markdown_table([_READABLE_HEAD, *_readable_rows(runs)], _NUMBERS)


def results_of(runs: Sequence[Run]) -> list[RunFinished]:
    """Return the results of the runs that finished."""
    return [run.result for run in runs if run.result is not None]


def _readable_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    results = results_of(runs)
    rows: list[tuple[str, ...]] = []
    for run in runs:
        summary, result = run.summary, run.result
        compared = speed_up(result, results) if result else None
        rows.append(
            (
                ", ".join(part for part in (run.request.workload, mode_words(run.request)) if part),
                run.size_label,
                run.request.dtype,
                _device_words(run),
                format_duration(summary.median_s) if summary else "–",
                format_duration(summary.iqr_s) if summary and summary.samples > 1 else "–",
                str(len(run.series)),
                format_rate(result.throughput, result.throughput_unit) if result else "–",
                compared.words if compared else "–",
                trust_sign(result) if result else state_text(run),
            )
        )
    return rows


def _claimed(run: Run, results: Sequence[RunFinished]) -> tuple[float | None, str | None]:
    """Return the speedup, if it is certain enough, and what it claims."""
    compared = speed_up(run.result, results) if run.result else None
    if compared is None:
        return None, None
    if compared.said_ratio is None:
        return None, compared.words
    if compared.doubts:
        return compared.ratio, f"about: {', '.join(doubt.word for doubt in compared.doubts)}"
    return compared.ratio, compared.outcome.value


def _device_words(run: Run) -> str:
    """Return the device of a run; for a recording, with the PC that it comes from."""
    name = run.result.device_name if run.result else run.device_name or run.request.device
    if name != run.request.device:
        name = name_at(pc_of(run.request.device), name)
    return f"{name} (recording: {run.recording})" if run.recording else name


def _cells(run: Run, results: Sequence[RunFinished]) -> dict[str, Cell]:
    cells: dict[str, Cell] = dict.fromkeys(_HEAD)
    if run.result is not None:
        result = run.result
        parts = (result, result.times, result.conditions, result.details, result.reached)
        fields = {k: v for one in parts if one for k, v in msgspec.structs.asdict(one).items()}
        cells |= {name: fields[name] for name in _HEAD if name in fields}
        cells["speed_up"], cells["speed_up_claim"] = _claimed(run, results)
        cells["share_of_ceiling"] = believed_share(result)
        naive = result.details.naive
        cells["naive_printed_s"] = naive.printed_s if naive else None
    chosen = run.request.settings | (run.result.parameters if run.result else {})
    cells |= {name: value for name, value in chosen.items() if name in _HEAD and name != "options"}
    options = run.result.options if run.result else run.request.options
    cells["options"] = "; ".join(f"{name}={value}" for name, value in options.items())
    cells["state"] = run.state.value
    cells["reason"] = run.failure.message if run.failure else None
    cells["recording"] = run.recording
    summary = run.summary
    if summary is not None:
        cells |= {name: getattr(summary, name) for name in ("median_s", "p99_s")}
        # One sample has no spread. The result has one of zero, which no reader may take for one.
        cells["iqr_s"] = summary.iqr_s if summary.samples > 1 else None
    rounds = len(run.result.rounds_s) if run.result is not None else 0
    if run.interval_s is not None and (rounds or len(run.series)) >= FEWEST_ROUNDS:
        cells["ci95_low_s"], cells["ci95_high_s"] = run.interval_s
    cells["samples"], cells["outliers"] = len(run.series), run.outliers
    cells["calls_per_sample"] = run.calls_per_sample
    return cells
