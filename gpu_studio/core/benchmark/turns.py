"""Whose turn it was while runs took turns, and what their samples say so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.messages.run_messages import RunConditions, RunFinished, RunTimes
from gpu_studio.core.statistics import interval_of_rounds, round_medians

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Batch, Run


_MOST_SAMPLES = 2000  # of a run: while it goes on, its claim is told a few times a second


class Turn(NamedTuple):
    """A time in which the samples of one run alone were taken.

    ``first`` is the position of its first sample in the run.
    """

    run: Run
    first: int
    begin_s: float
    end_s: float


def turns_of(runs: Sequence[Run]) -> list[Turn]:
    """Return the turns of runs by the clock of their samples, in order.

    Two rounds of a run without another's between them are one turn.
    """
    lines: list[tuple[float, int, int, Batch]] = []
    for number, run in enumerate(runs):
        first = 0
        for batch in run.batches:
            lines.append((batch.begin_s, number, first, batch))
            first = batch.end
    turns: list[Turn] = []
    for begin_s, number, first, batch in sorted(lines, key=lambda line: line[:3]):
        run = runs[number]
        if turns and turns[-1].run is run:
            turns[-1] = turns[-1]._replace(end_s=batch.end_s)
        else:
            turns.append(Turn(run, first, begin_s, batch.end_s))
    return turns


def results_so_far(runs: Sequence[Run]) -> list[RunFinished]:
    """Return what the samples of runs in turns would say if they ended now, for a claim.

    Nothing is known yet about the check; of the conditions only whether other programs worked too.
    """
    return [_so_far(run) for run in runs if len(run.series) and run.is_clocked]


def _so_far(run: Run) -> RunFinished:
    summary, starts, first = run.summary, list[int](), 0
    assert summary is not None
    rounds = 0
    for batch in run.batches:
        if batch.round_number != rounds:
            rounds = batch.round_number
            starts.append(first)
        first = batch.end
    every = -(-summary.samples // _MOST_SAMPLES)
    samples_s = run.series.values[::every].tolist()
    starts = [first // every for first in starts]
    return RunFinished(
        run_id=run.request.run_id,
        **run.request.parameters,
        device_name=run.device_name,
        median_s=summary.median_s,
        iqr_s=summary.iqr_s,
        ci95_s=interval_of_rounds(samples_s, starts),
        rounds_s=round_medians(samples_s, starts),
        samples=summary.samples,
        calls_per_sample=run.calls_per_sample,
        throughput=0.0,
        throughput_unit="",
        times=RunTimes(first_call_s=0.0, warm_up_s=0.0, elapsed_s=0.0),
        conditions=RunConditions(other_processes=run.other_processes),
        size_text=run.size_text,
        turns="so far",
    )
