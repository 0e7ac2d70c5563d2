"""The line over the curves of the Benchmark tab: who is faster, how much, and how sure that is.

`core.benchmark.claim` decides what may be claimed, also while a plan runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import Outcome
from gpu_studio.core.benchmark.options import mode_words
from gpu_studio.core.benchmark.run import RunState, results_so_far
from gpu_studio.core.benchmark.sizes import sizes_text
from gpu_studio.core.benchmark.trust import trust_of
from gpu_studio.core.benchmark.verdict import (
    SizeResults,
    claims_by_size,
    results_at_size,
    same_kind,
)
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.units import format_rate, format_size
from gpu_studio.model.benchmark.benchmark import result_label
from gpu_studio.model.run_queue import WorkState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.devices.device_board import DeviceRow

_FREE_MEMORY = "Choose smaller sizes, or close other programs that use the card."


class Hero(msgspec.Struct, frozen=True):
    """What stands over the curves.

    Attributes:
        headline: the claim in a few words, the rate of a single device, or a question.
        work: what the claim is about, or a hint.
        is_final: False while it may change.
        chip: how far to trust the result, the worst doubt first; empty for no chip.
        has_failed: whether ``work`` is the cause of a failure and its fix.
        action: what the button beside the result does; None for no button.
    """

    headline: str
    work: str
    is_final: bool = True
    chip: Notice = Notice()
    has_failed: bool = False
    action: Action | None = None


def hero_of(
    benchmark: Benchmark,
    rows: Sequence[DeviceRow],
    *,
    chosen: Run | None = None,
    devices: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
) -> Hero:
    """Return the line over the curves.

    Args:
        benchmark: its plan and its results.
        rows: name the devices.
        chosen: the selected run; it decides the size.
        devices: the addresses that Run would use, for the page before the first run.
        titles: the workloads' titles by their names.
    """
    words = _Words(benchmark, rows, titles or {})
    if chosen is not None and chosen.result is not None:
        found = results_at_size(benchmark.results, chosen.result)
        assert found is not None
        return words.of_results(found)
    if benchmark.state.is_busy and benchmark.running is not None:
        return words.of_plan(benchmark.running)
    has_result = any(run.result is not None for run in benchmark.planned)
    if benchmark.planned and not has_result:
        return words.without_result()
    latest = results_at_size(benchmark.results)
    if latest is None:
        return words.before_any_run(devices)
    return words.of_results(latest, elsewhere=True)


class _Words:
    """Turns results and runs into words, with the names of this PC."""

    def __init__(
        self, benchmark: Benchmark, rows: Sequence[DeviceRow], titles: Mapping[str, str]
    ) -> None:
        self._benchmark, self._rows, self._titles = benchmark, rows, titles

    def of_results(self, found: SizeResults, *, elsewhere: bool = False) -> Hero:
        """Return the claim at a size; ``elsewhere`` adds a size at which the other side wins."""
        claim = found.claim
        can_repeat = (
            claim is not None and claim.outcome is Outcome.BUSY and self._benchmark.can_run_again
        )
        opposite = self._opposite(found) if elsewhere and not found.wrong else ""
        return Hero(
            headline=_rate(found) or self._headline(found),
            work=f"{self._work_of(found)}{opposite}",
            chip=self._chip(found),
            action=Action.RUN_AGAIN if can_repeat else None,
        )

    def of_plan(self, run: Run) -> Hero:
        """Return the size that is measured now, as far as it is known."""
        benchmark = self._benchmark
        planned = [other for other in benchmark.planned if _is_beside(other.request, run.request)]
        results = [other.result for other in planned if other.result is not None]
        results += results_so_far([other for other in planned if other.result is None])
        found = results_at_size(results)
        claim = found.claim if found is not None else None
        headline = "Stopping…" if benchmark.state is WorkState.STOPPING else "Measuring…"
        chip = Notice(
            _capitalized(benchmark.left or "running"), Tone.QUIET, detail=benchmark.sentence
        )
        if found is not None and (found.wrong or (claim is not None and claim.sign)):
            headline = f"{self._headline(found)} so far"
        if claim is not None and claim.doubts:
            worst = min(claim.doubts, key=lambda doubt: doubt.rank)
            chip = Notice(_capitalized(worst.word), Tone.AMBER, detail=benchmark.sentence)
        work = self._work(run.request, run.size_label, mode_words(run.request))
        return Hero(headline, work, is_final=False, chip=chip)

    def without_result(self) -> Hero:
        """Return the cause of a failure, or that the user stopped."""
        benchmark = self._benchmark
        notice = benchmark.notice
        if not any(run.state is RunState.FAILED for run in benchmark.planned):
            return Hero("Stopped", notice.sentence, is_final=False)
        failures = [run.failure for run in benchmark.planned if run.failure is not None]
        causes = dict.fromkeys(failure.message for failure in failures)
        is_full = any(failure.kind is FailureKind.OUT_OF_MEMORY for failure in failures)
        explanation = " ".join((*causes, _FREE_MEMORY) if is_full else causes)
        # If the engine ended, the notice has the cause and what to do now.
        cause = notice.sentence if benchmark.has_lost_engine else explanation
        return Hero("No result", cause, chip=Notice("Failed", Tone.FAILURE), has_failed=True)

    def before_any_run(self, devices: Sequence[str]) -> Hero:
        hint = "Press Run to time this work in each size."
        if len(devices) > 1:
            hint = "Press Run: all devices do the same work, in turns."
        return Hero(self._question(devices), hint)

    def _question(self, devices: Sequence[str]) -> str:
        may_come = any(row.obstacle is Obstacle.NO_ENGINE for row in self._rows)
        software = {
            row.address for row in self._rows if row.adapter is not None and row.adapter.is_software
        }
        others = [one for one in devices if not is_cpu(one)]
        if others and software.issuperset(others):
            return "Which is faster on this CPU?"
        if may_come or others:
            return "How much faster is your card?"
        if self._rows[0].device is None:  # its cards are not listed yet
            return "How fast is your PC?"
        return "How fast is your CPU?"

    def _headline(self, found: SizeResults) -> str:
        """Return the claim in a few words: ``GT 1030 3.1 × faster``; empty for none."""
        claim, card = found.claim, found.card
        if found.wrong:
            return "Wrong results"
        if claim is None or card is None:
            return ""
        if not claim.sign:
            return _capitalized(claim.words)
        winner = self._name(card) if claim.sign > 0 else "CPU"
        return f"{winner} {claim.times} faster"

    def _chip(self, found: SizeResults) -> Notice:
        trust = trust_of((self._name(one), one) for one in found.results)
        if found.wrong:
            return Notice(f"At {_sizes(found.wrong)}", Tone.FAILURE, trust.detail)
        return trust

    def _opposite(self, found: SizeResults) -> str:
        """Return the smallest size at which the other side wins, as a sentence; or nothing."""
        claim, card = found.claim, found.card
        if claim is None or card is None or not claim.sign:
            return ""
        alike = [one for one in self._benchmark.results if same_kind(one, card)]
        claims = claims_by_size(alike, card.device, with_transfers=card.transfers)
        for size, other in claims.items():
            if other.sign == -claim.sign:
                winner = f"the {self._name(card)}" if other.sign > 0 else "the CPU"
                at = format_size(size, card.size_text)
                return f". At {at} {winner} is {other.times} faster."
        return ""

    def _name(self, result: RunFinished) -> str:
        label = result_label(result, self._rows)
        return f"{label}, with copies" if result.transfers else label

    def _work_of(self, found: SizeResults) -> str:
        result = found.results[-1]
        text = f"at {format_size(result.size, result.size_text)}"
        if _rate(found):
            text = f"{self._name(result)} {text}"
        recording = f"recording: {result.recording}" if result.recording else ""
        return " · ".join(filter(None, (text, recording)))

    def _work(self, work: RunFinished | RunWorkload, size: str, mode: str = "") -> str:
        title = self._titles.get(work.workload, work.workload)
        return " · ".join(part for part in (title, size, work.dtype, mode) if part)


def _is_beside(request: RunWorkload, other: RunWorkload) -> bool:
    return (request.size, request.dtype) == (other.size, other.dtype)


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
