"""The end of a race: who leads, by how much, why, and how certain that is.

`core.benchmark.claim` decides what may be claimed, from the steps of both. Their ratio is that
of their paces over the whole race, so it agrees with their bars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import (
    CANNOT_BE_TOLD,
    Claim,
    Outcome,
    claim_of,
    fixes_sentence,
)
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.device_name import is_cpu, pc_of
from gpu_studio.core.messages.race_messages import RaceFinished
from gpu_studio.core.race.contestant import contestant_name, contestant_result
from gpu_studio.core.units import (
    format_count,
    format_duration,
    format_percent,
    three_digits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.race_messages import ContestantResult, RaceOutcome
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription

# From this share of a step on, the launches set its time and not the computing.
_LAUNCH_DECIDES = 0.5


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything to say about a race.

    ``finished`` is the race's last message. ``reason`` explains the result from the measured parts,
    empty if they explain nothing. ``doubts`` are the reasons not to trust it; a race without doubts
    is green.
    ``is_kept_busy`` says that other programs are why there is no winner. ``times`` is how many
    times faster the leader is, as the sentence has it: rounded to one digit where there are doubts;
    empty without a leader.
    """

    finished: RaceFinished
    reason: str
    doubts: tuple[str, ...]
    is_kept_busy: bool = False
    times: str = ""

    @property
    def headline(self) -> str:
        """The result in large type: the ratio, a tie, or that there is none."""
        if self.finished.leader is None:
            return "A tie" if self.finished.ratio is not None else "No verdict"
        return f"{self.times[0].upper()}{self.times[1:]} faster"


def judge(picture: WorkloadDescription, runs: Sequence[Run]) -> Verdict:
    """Return the verdict on a race.

    Args:
        picture: the workload of all runs.
        runs: one for each contestant, over or not; recorded runs count like others.
    """
    contestants = tuple(map(contestant_result, runs))
    order = _order(runs, contestants)
    leader, ratio, undecided, sentence = None, None, False, ""
    duel = None
    if len(order) > 1:
        first, second = order[0], order[1]
        duel = _duel(runs[second], runs[first])
        outcome = duel.outcome if duel is not None else Outcome.UNCLEAR
        if duel is not None and outcome is Outcome.FASTER:
            leader, ratio = first, duel.ratio
        elif duel is not None and outcome is Outcome.EQUAL:
            ratio = duel.ratio
        undecided = outcome not in (Outcome.FASTER, Outcome.EQUAL)
        sentence = _Words(picture, runs, contestants).compared(first, second, duel)
    elif order:
        sentence = _Words(picture, runs, contestants).alone(order[0])
    finished = RaceFinished(
        picture=picture.name,
        size=runs[0].request.size,
        contestants=contestants,
        leader=leader,
        ratio=ratio,
        ratio_low=duel.low if duel is not None and ratio is not None else None,
        ratio_high=duel.high if duel is not None and ratio is not None else None,
        undecided=undecided,
        sentence=" ".join([sentence, *_across(order, runs), *_missing(runs, contestants)]).strip(),
    )
    return Verdict(
        finished=finished,
        reason=reason_of(picture, runs),
        doubts=_doubts(runs),
        is_kept_busy=duel is not None and duel.is_kept_busy,
        times=duel.times if duel is not None and leader is not None else "",
    )


def _doubts(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the doubts about all results; an unfinished contestant leaves nothing to trust."""
    results = [run.result for run in runs if run.result is not None]
    return tuple(dict.fromkeys(doubt for each in results for doubt in stamp_of(each).doubts))


def reason_of(picture: WorkloadDescription, runs: Sequence[Run]) -> str:
    """Return why the race ended like this, from the measured parts; empty if they do not say."""
    for run in runs:
        result = run.result
        if result is None or is_cpu(result.device):
            continue
        total_s = sum(result.parts_s.values())
        launch_s = result.parts_s.get("launch", 0.0)
        if total_s and launch_s >= _LAUNCH_DECIDES * total_s:
            return (
                f"Launch cost: {format_percent(launch_s / total_s)} of a step on "
                f"{contestant_name(run)} is launching kernels, not computing."
            )
        if result.ceiling and result.share_of_ceiling is not None:
            share = format_percent(result.share_of_ceiling)
            name = contestant_name(run)
            return f"{name[:1].upper()}{name[1:]} reaches {share} of its limit: {result.ceiling}."
    return _threads_reason(runs)


def _threads_reason(runs: Sequence[Run]) -> str:
    """Return what more threads gave on the CPU."""
    results = [run.result for run in runs if run.result is not None and run.result.cpu_threads]
    if len(results) != 2 or any(not is_cpu(result.device) for result in results):
        return ""
    few, many = sorted(results, key=lambda result: result.cpu_threads or 0)
    if few.cpu_threads == many.cpu_threads or few.dtype != many.dtype:
        return ""
    # The means, which agree with the steps a second.
    one, other = (_mean_step_s(result) or result.median_s for result in (few, many))
    return (
        f"A step takes {format_duration(one)} with {few.cpu_threads} "
        f"{'thread' if few.cpu_threads == 1 else 'threads'} and {format_duration(other)} "
        f"with {many.cpu_threads}."
    )


def _order(runs: Sequence[Run], contestants: Sequence[ContestantResult]) -> list[int]:
    """Return the contestants that have a result, fastest first."""
    over = [index for index, run in enumerate(runs) if run.result and run.result.outcome]

    def key(index: int) -> tuple[bool, float]:
        one = contestants[index]
        return one.verified is False, one.seconds / max(one.steps, 1)

    return sorted(over, key=key)


def _duel(slower: Run, faster: Run) -> Claim | None:
    """Return the comparison of two finished contestants."""
    reference, device = slower.result, faster.result
    assert reference is not None
    assert device is not None
    pace, other = _mean_step_s(device), _mean_step_s(reference)
    whole = None if pace is None or other is None else other / pace
    return claim_of(reference, device, ratio=whole)


def _mean_step_s(result: RunFinished) -> float | None:
    outcome: RaceOutcome | None = result.outcome
    if outcome is None or not (outcome.steps and outcome.seconds):
        return None
    return outcome.seconds / outcome.steps


def _across(order: Sequence[int], runs: Sequence[Run]) -> list[str]:
    """Return that the results are of several PCs, whose runs cannot take turns."""
    pcs = {pc_of(runs[index].request.device) for index in order}
    return ["They ran on two PCs, so not in turns."] if len(pcs) > 1 else []


def _missing(runs: Sequence[Run], contestants: Sequence[ContestantResult]) -> list[str]:
    """Return a sentence for each contestant without a result."""
    sentences = []
    for run, one in zip(runs, contestants, strict=True):
        if one.failure:
            name = contestant_name(run, runs)
            ends = {"stopped": "was stopped", "did not run": "did not run"}
            why = ends.get(one.failure, f"did not finish: {one.failure}")
            sentences.append(f"{name[:1].upper()}{name[1:]} {why.rstrip('.')}.")
    return sentences


class _Words:
    """The sentences about finished contestants, by their index."""

    def __init__(
        self,
        picture: WorkloadDescription,
        runs: Sequence[Run],
        contestants: Sequence[ContestantResult],
    ) -> None:
        assert picture.race is not None
        self._traits = picture.race
        self._runs, self._contestants = runs, contestants

    def compared(self, first: int, second: int, duel: Claim | None) -> str:
        """Return the sentence about the two fastest."""
        names = self._name(first), self._name(second)
        outcome = duel.outcome if duel is not None else Outcome.UNCLEAR
        if outcome is Outcome.WRONG:
            wrong = [
                self._name(index)
                for index, one in enumerate(self._contestants)
                if one.verified is False
            ]
            return f"No winner: {' and '.join(wrong)} computed wrong results."
        if duel is not None and outcome is Outcome.FASTER:
            return f"{_capital(names[0])} {self._won(first, second, duel.times, names[1])}."
        if outcome is Outcome.EQUAL:
            return (
                f"A tie: {names[0]} and {names[1]} are equally fast, {self._paces(first, second)}."
            )
        reason = duel.why if duel is not None else "a time is missing"
        fixes = fixes_sentence([duel]) if duel is not None else ""
        text = f"It {CANNOT_BE_TOLD} whether {names[0]} or {names[1]} is faster: {reason}."
        return f"{text} {fixes}".strip()

    def alone(self, index: int) -> str:
        """Return the sentence about the only contestant with a result."""
        one = self._contestants[index]
        name = _capital(self._name(index))
        steps, time = self._steps(index), format_duration(one.seconds)
        if one.reached:
            return f"{name} did {steps} in {time}."
        return f"{name} stopped after {steps} of {format_count(one.finish_steps or 0)}, in {time}."

    def _won(self, first: int, second: int, times: str, other: str) -> str:
        return f"beat {other}: {times} faster, {self._paces(first, second)}"

    def _paces(self, first: int, second: int) -> str:
        """Return the steps a second of both."""
        paces = " against ".join(
            three_digits(one.steps / one.seconds if one.seconds else 0.0)
            for one in (self._contestants[first], self._contestants[second])
        )
        return f"{paces} {self._traits.step_title} a second"

    def _steps(self, index: int) -> str:
        steps = self._contestants[index].steps
        title = self._traits.step_title
        return f"{format_count(steps)} {title[:-1] if steps == 1 else title}"

    def _name(self, index: int) -> str:
        return contestant_name(self._runs[index], self._runs)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
