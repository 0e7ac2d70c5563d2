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
from gpu_studio.core.benchmark.trust import trust_of
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.messages.race_messages import RaceFinished
from gpu_studio.core.race.contestant import contestant_name, contestant_result
from gpu_studio.core.units import (
    format_count,
    format_duration,
    format_percent,
    three_digits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.race_messages import ContestantResult, RaceOutcome
    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription
    from gpu_studio.core.notice import Notice

# From this share of a step on, the launches set its time and not the computing.
_LAUNCH_DECIDES = 0.5


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything to say about a race.

    ``finished`` is the race's last message. ``reason`` explains the result from the measured parts,
    empty if they explain nothing. ``trust`` says how far to trust the results. ``claim`` compares
    the two fastest; None without two results.
    """

    finished: RaceFinished
    reason: str
    trust: Notice
    claim: Claim | None = None

    @property
    def headline(self) -> str:
        """The result in large type: the ratio, a tie, or that there is none."""
        if self.claim is None or self.finished.ratio is None:
            return "No verdict"
        words = self.claim.words if self.claim.sign else "a tie"
        return _capital(words)


def judge(picture: WorkloadDescription, runs: Sequence[Run]) -> Verdict:
    """Return the verdict on a race.

    Args:
        picture: the workload of all runs.
        runs: one for each contestant, over or not; recorded runs count like others.
    """
    contestants = tuple(map(contestant_result, runs))
    order = _order(runs, contestants)
    claim = _claim(runs[order[1]], runs[order[0]]) if len(order) > 1 else None
    ratio = claim.said_ratio if claim is not None and claim.sign >= 0 else None
    results = [(contestant_name(run, runs), run.result) for run in runs if run.result is not None]
    finished = RaceFinished(
        picture=picture.name,
        size=runs[0].request.size,
        contestants=contestants,
        leader=order[0] if claim is not None and claim.sign > 0 else None,
        ratio=ratio,
        ratio_low=claim.low if claim is not None and ratio is not None else None,
        ratio_high=claim.high if claim is not None and ratio is not None else None,
        undecided=len(order) > 1 and ratio is None,
        sentence=" ".join(_sentences(picture, runs, contestants, order, claim)),
    )
    return Verdict(
        finished=finished,
        reason=reason_of(picture, runs),
        trust=trust_of(results),
        claim=claim,
    )


def reason_of(picture: WorkloadDescription, runs: Sequence[Run]) -> str:
    """Return why the race ended like this, from the measured parts; empty if they do not say."""
    for run in runs:
        result = run.result
        if result is None or is_cpu(result.device):
            continue
        total_s = sum(result.details.parts_s.values())
        launch_s = result.details.parts_s.get("launch", 0.0)
        if total_s and launch_s >= _LAUNCH_DECIDES * total_s:
            return (
                f"Launch cost: {format_percent(launch_s / total_s)} of a step on "
                f"{contestant_name(run)} is launching kernels, not computing."
            )
        reached = result.reached
        if reached is not None and reached.ceiling:
            share, name = format_percent(reached.share), contestant_name(run)
            return f"{name[:1].upper()}{name[1:]} reaches {share} of its limit: {reached.ceiling}."
    return _threads_reason(runs)


def _threads_reason(runs: Sequence[Run]) -> str:
    """Return what more threads gave on the CPU."""
    known = [(run.result.conditions.cpu_threads or 0, run.result) for run in runs if run.result]
    counted = sorted((one for one in known if one[0]), key=lambda one: one[0])
    if len(counted) != 2 or any(not is_cpu(result.device) for _, result in counted):
        return ""
    (fewer, few), (more, many) = counted
    if fewer == more or few.dtype != many.dtype:
        return ""
    # The means, which agree with the steps a second.
    one, other = (_mean_step_s(result) or result.median_s for result in (few, many))
    return (
        f"A step takes {format_duration(one)} with {fewer} "
        f"{'thread' if fewer == 1 else 'threads'} and {format_duration(other)} "
        f"with {more}."
    )


def _order(runs: Sequence[Run], contestants: Sequence[ContestantResult]) -> list[int]:
    """Return the contestants that have a result, fastest first."""
    over = [index for index, run in enumerate(runs) if run.result and run.result.outcome]

    def key(index: int) -> tuple[bool, float]:
        one = contestants[index]
        return one.verified is False, one.seconds / max(one.steps, 1)

    return sorted(over, key=key)


def _claim(slower: Run, faster: Run) -> Claim | None:
    """Return the comparison of two finished contestants, by their paces over the whole race."""
    reference, device = slower.result, faster.result
    assert reference is not None
    assert device is not None
    pace, other = _mean_step_s(device), _mean_step_s(reference)
    return claim_of(reference, device, ratio=other / pace if pace and other else None)


def _mean_step_s(result: RunFinished) -> float | None:
    outcome: RaceOutcome | None = result.outcome
    if outcome is None or not (outcome.steps and outcome.seconds):
        return None
    return outcome.seconds / outcome.steps


def _sentences(
    picture: WorkloadDescription,
    runs: Sequence[Run],
    contestants: Sequence[ContestantResult],
    order: Sequence[int],
    claim: Claim | None,
) -> Iterator[str]:
    """Yield what is to be said: who won, and who has no result."""
    assert picture.race is not None
    names = [contestant_name(run, runs) for run in runs]
    title = picture.race.step_title
    if len(order) == 1:
        yield _alone(names[order[0]], contestants[order[0]], title)
    elif order:
        yield _compared(names, contestants, order, claim, title)
    for name, one in zip(names, contestants, strict=True):
        if one.failure:
            ends = {"stopped": "was stopped", "did not run": "did not run"}
            why = ends.get(one.failure, f"did not finish: {one.failure}")
            yield f"{_capital(name)} {why.rstrip('.')}."


def _compared(
    names: Sequence[str],
    contestants: Sequence[ContestantResult],
    order: Sequence[int],
    claim: Claim | None,
    title: str,
) -> str:
    """Return the sentence about the two fastest."""
    first, second = (names[index] for index in order[:2])
    paces = " against ".join(
        three_digits(one.steps / one.seconds if one.seconds else 0.0)
        for one in (contestants[index] for index in order[:2])
    )
    paces = f"{paces} {title} a second"
    if claim is None:
        return f"It {CANNOT_BE_TOLD} whether {first} or {second} is faster: a time is missing."
    match claim.outcome:
        case Outcome.WRONG:
            both = zip(names, contestants, strict=True)
            wrong = " and ".join(name for name, one in both if one.verified is False)
            return f"No winner: {wrong} computed wrong results."
        case Outcome.FASTER:
            return f"{_capital(first)} beat {second}: {claim.words}, {paces}."
        case Outcome.EQUAL:
            return f"A tie: {first} and {second} are equally fast, {paces}."
    text = f"It {CANNOT_BE_TOLD} whether {first} or {second} is faster: {claim.why}."
    return f"{text} {fixes_sentence([claim])}".strip()


def _alone(name: str, one: ContestantResult, title: str) -> str:
    """Return the sentence about the only contestant with a result."""
    steps = f"{format_count(one.steps)} {title[:-1] if one.steps == 1 else title}"
    time = format_duration(one.seconds)
    if one.reached:
        return f"{_capital(name)} did {steps} in {time}."
    of = format_count(one.finish_steps or 0)
    return f"{_capital(name)} stopped after {steps} of {of}, in {time}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
