"""The result at the top of the Benchmark tab: large words, a bar for each device, one chip.

`core.benchmark.claim` decides what may be claimed. While a plan runs, the same parts show what
is known so far; before the first run, and after a failure, they show empty bars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.run import RunState, interval_words, mode_words
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.benchmark.trust import trust_of
from gpu_studio.core.benchmark.verdict import SizeResults, results_at_size
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.units import format_duration, format_rate, format_size
from gpu_studio.model.benchmark.benchmark import left_words
from gpu_studio.model.benchmark.run_labels import result_label, run_label
from gpu_studio.model.devices.device_board import label_of
from gpu_studio.model.run_queue import WorkState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceRow

_FREE_MEMORY = "Choose smaller sizes, or close other programs that use the card."
_COPIES = "with copies"


class HeroBar(msgspec.Struct, frozen=True):
    """One device's time per call; ``median_s`` is None until it has one.

    ``is_final`` is False while more samples may change the median.
    """

    name: str
    device: str
    median_s: float | None = None
    is_final: bool = True
    tip: str = ""

    @property
    def text(self) -> str:
        """The time in words; empty without one."""
        return "" if self.median_s is None else format_duration(self.median_s)


class Hero(msgspec.Struct, frozen=True):
    """What the tab shows above everything else.

    Attributes:
        headline: the claim in a few words, the rate of a single device, or a question.
        is_final: False shows the headline in gray.
        is_ratio: whether the headline is a figure, in larger type than words.
        work: what the bars compare, or a hint.
        bars: one for each device and mode.
        chip: how far to trust the result, with all reasons; empty for no chip.
        has_failed: whether ``work`` is the cause of a failure and its fix.
        action: what the button beside the result does; None for no button.
    """

    headline: str
    work: str
    bars: tuple[HeroBar, ...] = ()
    is_final: bool = True
    is_ratio: bool = False
    chip: Notice = Notice()
    has_failed: bool = False
    action: Action | None = None

    @property
    def for_picture(self) -> Hero:
        """The same without a button."""
        return msgspec.structs.replace(self, action=None)

    @property
    def is_wrong(self) -> bool:
        """Whether the headline says that results are wrong, and the chip at which sizes."""
        return self.chip.tone is Tone.FAILURE and not self.has_failed


def hero_of(
    benchmark: Benchmark,
    rows: Sequence[DeviceRow],
    *,
    chosen: Run | None = None,
    devices: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
) -> Hero:
    """Return the top of the page.

    Args:
        benchmark: its plan and its results.
        rows: name the devices.
        chosen: the run under the cursor, or the selected one; it decides the size.
        devices: the addresses that Run would use, for the page before the first run.
        titles: the workloads' titles by their names.
    """
    words = _Words(rows, titles or {})
    if chosen is not None and chosen.result is not None:
        found = results_at_size(benchmark.results, chosen.result)
        assert found is not None
        return words.of_results(found, can_run_again=benchmark.can_run_again)
    if benchmark.state.is_busy and benchmark.running is not None:
        return words.of_plan(benchmark, benchmark.running)
    has_result = any(run.result is not None for run in benchmark.planned)
    if benchmark.planned and not has_result:
        return words.without_result(benchmark)
    latest = results_at_size(benchmark.results)
    if latest is None:
        return words.before_any_run(devices)
    return words.of_results(latest, can_run_again=benchmark.can_run_again)


class _Words:
    """Turns results and runs into words, with the names of this PC."""

    def __init__(self, rows: Sequence[DeviceRow], titles: Mapping[str, str]) -> None:
        self._rows, self._titles = rows, titles

    def of_results(self, found: SizeResults, *, can_run_again: bool) -> Hero:
        results, claim = found.results, found.claim
        trust = trust_of((self._name(one), one) for one in results)
        if found.wrong:
            trust = Notice(f"At {_sizes(found.wrong)}", Tone.FAILURE, trust.detail)
        rate = _rate(found)
        # One bar would be as long as its track, and say nothing.
        bars = (
            HeroBar(self._name(one), one.device, one.median_s, tip=self._tip(one))
            for one in (results if not rate else ())
        )
        return Hero(
            headline=rate or _ratio(found),
            is_ratio=bool(rate) or _has_ratio(found),
            work=self._work_of(found),
            bars=tuple(bars),
            chip=trust,
            action=Action.RUN_AGAIN if claim and claim.is_kept_busy and can_run_again else None,
        )

    def of_plan(self, benchmark: Benchmark, run: Run) -> Hero:
        """Return the size that is measured now, as far as it is known."""
        planned = [other for other in benchmark.planned if _is_beside(other.request, run.request)]
        waiting = [one for one in benchmark.waiting if _is_beside(one, run.request)]
        bars = [self._bar_of(other) for other in planned]
        bars += [HeroBar(self._label(one, run), one.device) for one in waiting]
        finished = [other.result for other in planned if other.result is not None]
        so_far = results_at_size(finished)
        headline = _ratio(so_far) if so_far is not None else ""
        if benchmark.state is WorkState.STOPPING:
            headline = headline or "Stopping…"
        left_s = benchmark.left_s
        left = left_words(left_s) if left_s is not None else "running"
        return Hero(
            headline=headline or "Measuring…",
            is_ratio=so_far is not None and _has_ratio(so_far),
            work=self._work(run.request, run.size_label, mode_words(run)),
            bars=tuple(bars) if len(bars) > 1 else (),
            is_final=False,
            chip=Notice(left[:1].upper() + left[1:], Tone.QUIET, detail=benchmark.sentence),
        )

    def without_result(self, benchmark: Benchmark) -> Hero:
        """Return the cause of a failure, or that the user stopped."""
        last = benchmark.planned[-1]
        notice = benchmark.notice
        beside = [run for run in benchmark.planned if _is_beside(run.request, last.request)]
        bars = tuple(self._bar_of(run) for run in beside)
        if not any(run.state is RunState.FAILED for run in benchmark.planned):
            return Hero("Stopped", notice.sentence, bars, is_final=False)
        failures = [run.failure for run in benchmark.planned if run.failure is not None]
        causes = dict.fromkeys(failure.message for failure in failures)
        is_full = any(failure.kind is FailureKind.OUT_OF_MEMORY for failure in failures)
        explanation = " ".join((*causes, _FREE_MEMORY) if is_full else causes)
        # If the engine ended, the notice has the cause and what to do now.
        cause = notice.sentence if benchmark.has_lost_engine else explanation
        return Hero("No result", cause, bars, chip=Notice("Failed", Tone.FAILURE), has_failed=True)

    def before_any_run(self, devices: Sequence[str]) -> Hero:
        hint = "Press Run to time this work in each size."
        if len(devices) > 1:
            hint = "Press Run: all devices do the same work, in turns."
        return Hero(
            self._question(devices),
            f"{hint} Each result is checked, unless that would take too long.",
            tuple(HeroBar(label_of(one, self._rows), one) for one in devices),
        )

    def _question(self, devices: Sequence[str]) -> str:
        may_come = any(row.obstacle is Obstacle.NO_ENGINE for row in self._rows)
        if may_come or not all(is_cpu(address) for address in devices):
            return "How much faster is your card?"
        if self._rows[0].device is None:  # its cards are not listed yet
            return "How fast is your PC?"
        return "How fast is your CPU?"

    def _bar_of(self, run: Run) -> HeroBar:
        median_s = run.summary.median_s if run.summary is not None else None
        return HeroBar(
            _with_mode(run_label(run, self._rows), run.request.transfers),
            run.request.device,
            median_s,
            # A bar that has not begun to grow is not on its way.
            is_final=run.result is not None or not run.has_begun,
        )

    def _label(self, request: RunWorkload, run: Run) -> str:
        label = label_of(request.device, self._rows)
        recorded = run.recording is not None
        return _with_mode(f"{label}, recorded" if recorded else label, request.transfers)

    def _name(self, result: RunFinished) -> str:
        return _with_mode(result_label(result, self._rows), result.transfers)

    def _tip(self, result: RunFinished) -> str:
        interval = interval_words(result.ci95_s, result.samples, len(result.rounds_s))
        return (
            f"{self._name(result)}: {format_duration(result.median_s)} per call (median of "
            f"{result.samples}), {interval}"
        )

    def _work_of(self, found: SizeResults) -> str:
        result = found.results[-1]
        text = self._work(result, format_size(result.size, result.size_text))
        if _rate(found):
            text = f"{self._name(result)} · {text}"
        cards = [one for one in found.results if not is_cpu(one.device)]
        if found.card is not None and len(cards) > 1 and not found.wrong:
            text += f" · {self._name(found.card)} compared with the CPU"
        recording = f"recording: {result.recording}" if result.recording else ""
        return " · ".join(filter(None, (text, recording)))

    def _work(self, work: RunFinished | RunWorkload, size: str, mode: str = "") -> str:
        title = self._titles.get(work.workload, work.workload)
        return " · ".join(part for part in (title, size, work.dtype, mode) if part)


def _with_mode(label: str, transfers: bool) -> str:
    return f"{label}, {_COPIES}" if transfers else label


def _is_beside(request: RunWorkload, other: RunWorkload) -> bool:
    return (request.size, request.dtype) == (other.size, other.dtype)


def _has_ratio(found: SizeResults) -> bool:
    """Return whether `_ratio` says how many times faster a device is."""
    return not found.wrong and found.claim is not None and found.claim.sign != 0


def _ratio(found: SizeResults) -> str:
    """Return the claim in a few words: ``3.1 × faster``, ``CPU 4.0 × faster``; empty for none."""
    if found.wrong:
        return "Wrong results"
    if found.claim is None:
        return ""
    if found.claim.sign < 0:
        return f"CPU {found.claim.times} faster"
    return _capitalized(found.claim.words)


def _rate(found: SizeResults) -> str:
    """Return the work per second of a right result that stands alone; else empty."""
    if len(found.results) != 1 or found.wrong:
        return ""
    return format_rate(found.results[0].throughput, found.results[0].throughput_unit)


def _sizes(results: Sequence[RunFinished]) -> str:
    texts = {one.size: format_size(one.size, one.size_text) for one in results}
    return sizes_text([texts[size] for size in sorted(texts)])


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
