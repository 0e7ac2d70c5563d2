"""One result explained: two stopwatches, the time breakdown, the peak, the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.ceilings import is_this_normal, share_text
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import PARTS_BESIDE_MEDIAN, part_rows, parts_sentence
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_bytes, format_duration
from gpu_studio.model.benchmark.benchmark import run_label
from gpu_studio.model.page_model import Bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceBoard

_NO_STOPWATCH = (
    "Off. Tick “Also time it naively” in More options and run again to see the time that a "
    "careless script would print."
)
_NO_PEAK = "This device's peak is not known, so there is nothing to compare with."


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A result and the others of the same work in words, bars and rows.

    ``parts`` are about a call of each device, ``peaks`` are shares of what a device can reach, and
    ``curves`` are those of the workload by their names.
    """

    caption: str = ""
    naive: tuple[Bar, ...] = ()
    naive_sentence: str = ""
    parts: tuple[Bar, ...] = ()
    part_rows: tuple[tuple[str, ...], ...] = ()
    parts_sentence: str = ""
    peaks: tuple[Bar, ...] = ()
    peak_sentence: str = ""
    findings: str = ""
    curves: Mapping[str, Sequence[float]] = {}


def explained(selected: Run | None, benchmark: Benchmark, board: DeviceBoard) -> Explained:
    """Explain the selected run, or the one that finished last."""
    finished = [run for run in benchmark.runs if run.result is not None]
    run = selected if selected in finished else finished[-1] if finished else None
    if run is None or run.result is None:
        return Explained()
    result = run.result
    beside = _beside(run, finished, board)
    words = (
        benchmark.title_of(result.workload), run.size_label, result.dtype, mode_words(run.request),
        run_label(run, board.rows),
    )  # fmt: skip
    naive = result.details.naive
    split = {name: one for name, one in beside.items() if one.details.parts_s}
    sentences = [parts_sentence(one, name) for name, one in split.items()]
    if any(len(one.details.parts_s) > 1 for one in split.values()):
        sentences.append(PARTS_BESIDE_MEDIAN)
    row = board.at(result.device) if run.recording is None else None
    peak = is_this_normal(result, row.device if row is not None else None)
    label = next(name for name, one in beside.items() if one is result)
    return Explained(
        caption=" · ".join(filter(None, words)),
        naive=() if naive is None else tuple(_stopwatches(result)),
        naive_sentence=_NO_STOPWATCH if naive is None else naive.sentence,
        parts=tuple(_parts(name, one) for name, one in split.items()),
        part_rows=tuple((name, *row) for name, one in split.items() for row in part_rows(one)),
        parts_sentence=" ".join(filter(None, sentences)) or "This workload has no time breakdown.",
        peaks=tuple(
            Bar(name=name, device=one.device, value=one.reached.share, text=shown)
            for name, one in beside.items()
            # A share that is not credible has no text, and gets no bar.
            if one.reached is not None and (shown := share_text(one))
        ),
        peak_sentence=f"{label}: {peak}" if peak else _NO_PEAK,
        findings="\n".join(_findings(result, beside)),
        curves=result.details.curves,
    )


def _beside(run: Run, finished: Sequence[Run], board: DeviceBoard) -> dict[str, RunFinished]:
    """Return the result and the latest other of the same work for each device and mode, by name."""
    latest: dict[tuple[str, str], Run] = {}
    for other in (*finished, run):
        if _work(other) == _work(run):
            latest[other.request.device, mode_words(other.request)] = other
    return {
        " · ".join(filter(None, (run_label(one, board.rows), mode))): one.result
        for (_, mode), one in latest.items()
        if one.result is not None
    }


def _work(run: Run) -> tuple[object, ...]:
    return run.request.workload, run.request.size, run.request.dtype, run.recording


def _stopwatches(result: RunFinished) -> list[Bar]:
    naive = result.details.naive
    assert naive is not None
    bars = [("honest: median", result.median_s), ("naive: printed by a script", naive.printed_s)]
    if not is_cpu(result.device):  # the CPU returns only when it is done
        bars.append(("finished on the device", naive.finished_s))
    return [
        Bar(
            name=name, device=result.device, value=seconds, text=format_duration(seconds),
            is_hatched=bool(place),
        )
        for place, (name, seconds) in enumerate(bars)
    ]  # fmt: skip


def _parts(name: str, result: RunFinished) -> Bar:
    parts_s = result.details.parts_s
    whole_s = sum(parts_s.values())
    return Bar(
        name=name, device=result.device, value=whole_s, text=format_duration(whole_s),
        parts=tuple(parts_s.items()),
    )  # fmt: skip


def _findings(result: RunFinished, beside: Mapping[str, RunFinished]) -> list[str]:
    peaks = [
        f"{name} {format_bytes(one.details.peak_allocated_bytes)}"
        for name, one in beside.items()
        if one.details.peak_allocated_bytes is not None
    ]
    first = format_duration(result.times.first_call_s)
    return [
        *result.details.findings,
        *([f"Peak allocated memory: {', '.join(peaks)}."] if peaks else []),
        f"The first call of the warm-up took {first}. The median leaves it out.",
    ]
