"""Which of two results is faster, and is that certain? A single function decides: `compare`.

Wrong results and overlapping intervals have no winner. Results of rounds in turns met the same
disturbances, so the interval of their ratio has them in it. While other programs keep the PC busy,
a winner counts only if it won every round, and its lead is rounded. A card that works for others as
well is slower all the time, so the other side must win by a factor of two. Results of two times may
differ more than their intervals say, because each run finds other places in memory: a winner counts
only if it still wins by a quarter less, and never against a time that other programs disturbed
(identical products took up to 200 times as long). Any other doubt about a time (few samples, a
throttled card) may mean a factor of two in either direction. If both times are doubtful, only one
may be wrong by that factor, because a disturbance slows both down. Two results count as equally
fast only if the whole interval of their ratio lies within ± 5 %.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.option_words import value_words
from gpu_studio.core.benchmark.trust import (
    BUSY,
    MET_BY_BOTH,
    TIMING_REMEDIES,
    stamp_of,
    timing_doubts,
)
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.listing import listed
from gpu_studio.core.pause import pauses_sentence
from gpu_studio.core.statistics import FEWEST_ROUNDS, ratio_interval
from gpu_studio.core.units import (
    format_about,
    format_bytes,
    format_duration,
    format_ratio,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpu_studio.core.messages.run_messages import RunFinished, WorkloadDescription

# Moving work is not worth less than this, and two runs of the same work can differ as much.
SAME_WITHIN = 1.05
_DOUBTED_BY = 2.0
APART_BY = 1.25
"""How much two runs of the same work differ from run to run.

Elementwise work differs by up to 25 % between processes whose memory is steady
(`tests/bench/steadiness.py`).
"""


class Claim(Enum):
    """The verdict on a device compared with its reference."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"
    UNDECIDED = "too close to call"
    WRONG = "wrong results"


class Comparison(msgspec.Struct, frozen=True):
    """How many times faster a device is than its reference at one size.

    Attributes:
        size: the size of both.
        ratio: reference median / device median.
        low, high: what the 95 % intervals of both medians allow.
        doubts: why one of the times may be far off, in a word or two each.
        is_wrong: whether one of the two computed wrong results.
        remedies: what would remove the doubts.
        kinds: the kinds of the doubts (`core.benchmark.trust`).
        rounds: the ratio of each round, of two results that took turns.
        is_apart: whether they did not, and so met other disturbances.
        busy: those that other programs disturbed: 1 the device, -1 the reference.
        shared: the one that is a card which works for other programs as well, while the other is
            another device: 1 the device, -1 the reference, 0 neither or both.
    """

    size: int
    ratio: float
    low: float
    high: float
    doubts: tuple[str, ...] = ()
    is_wrong: bool = False
    remedies: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    rounds: tuple[float, ...] = ()
    is_apart: bool = False
    busy: frozenset[int] = frozenset()
    shared: int = 0

    @property
    def is_busy(self) -> bool:
        """Whether other programs used a device meanwhile."""
        return bool(self.kinds & BUSY)

    @property
    def is_kept_busy(self) -> bool:
        """Whether there is no winner because of other programs: another run may find one."""
        return self.outcome is Claim.UNDECIDED and self.is_busy and bool(self.rounds)

    @property
    def outcome(self) -> Claim:
        """The verdict."""
        if self.is_wrong:
            return Claim.WRONG
        if self.low / self._margin(1) > 1 and self.ratio >= SAME_WITHIN and self._agrees(1):
            return Claim.FASTER
        if self.high * self._margin(-1) < 1 and self.ratio <= 1 / SAME_WITHIN and self._agrees(-1):
            return Claim.SLOWER
        if not self.doubts and self.low >= 1 / SAME_WITHIN and self.high <= SAME_WITHIN:
            return Claim.EQUAL
        return Claim.UNDECIDED

    def _margin(self, winner: int) -> float:
        """Return how far the ratio may be off in favor of a winner, beyond its interval."""
        if self.is_apart:
            return _DOUBTED_BY if self.doubts else APART_BY
        if self.shared == -winner:
            return _DOUBTED_BY
        met = MET_BY_BOTH if self.rounds else frozenset[str]()
        own = self.kinds - met
        return _DOUBTED_BY if own else 1.0

    def _agrees(self, sign: int) -> bool:
        """Whether every round has the same winner; it matters on a busy PC.

        Without rounds in turns, nothing bounds how much other programs slowed a loser down.
        """
        if self.is_apart:
            return -sign not in self.busy
        return not self.is_busy or all(sign * math.log(ratio) > 0 for ratio in self.rounds)

    @property
    def sign(self) -> int:
        """1 if the device wins, -1 if the reference wins, 0 otherwise."""
        return {Claim.FASTER: 1, Claim.SLOWER: -1}.get(self.outcome, 0)

    @property
    def claimed_ratio(self) -> float | None:
        """The ratio, if the verdict allows one."""
        claims = (Claim.FASTER, Claim.SLOWER, Claim.EQUAL)
        return self.ratio if self.outcome in claims else None

    @property
    def times(self) -> str:
        """How many times faster the winner is: ``4.0 ×``, or ``about 20 ×`` if doubtful."""
        lead = max(self.ratio, 1 / self.ratio)
        return f"about {format_about(lead)}" if self.doubts else format_ratio(lead)

    @property
    def reason(self) -> str:
        """The reason why there is no winner; empty if there is one."""
        if self.outcome is not Claim.UNDECIDED:
            return ""
        if self.is_kept_busy:
            return "other programs keep this PC busy"
        if self.low <= 1 <= self.high:
            return "their times overlap"
        if self.doubts:
            return f"the times are doubtful ({', '.join(self.doubts)})"
        if self.is_apart and max(self.ratio, 1 / self.ratio) >= SAME_WITHIN:
            return "runs of two times differ by as much: measure both again, together"
        return "their medians differ by less than 5 %"

    @property
    def cell(self) -> str:
        """The ratio for a table: ``4.0 ×``, ``≈ 20 ×``, or the verdict instead."""
        if self.is_kept_busy:
            return "no verdict"
        if self.claimed_ratio is None:
            return self.outcome.value
        return f"≈ {format_about(self.ratio)}" if self.doubts else format_ratio(self.ratio)


def compare(reference: RunFinished, device: RunFinished) -> Comparison | None:
    """Return the comparison of two results of the same work.

    None if one of them has no time, or a time that is only for show.
    """
    if not (_has_time(reference) and _has_time(device)):
        return None
    doubts = [doubt for result in (reference, device) for doubt in timing_doubts(result)]
    ratio = reference.median_s / device.median_s
    pairs: tuple[tuple[float, float], ...] = ()
    low, high = (a / b for a, b in zip(reference.ci95_s, reversed(device.ci95_s), strict=True))
    if reference.turns and reference.turns == device.turns:
        pairs = tuple(zip(reference.rounds_s, device.rounds_s, strict=False))
        if len(pairs) >= FEWEST_ROUNDS:
            ours, theirs = zip(*pairs, strict=True)
            low, high = ratio_interval(ours, theirs, ratio)
    return Comparison(
        size=device.size,
        ratio=ratio,
        low=low,
        high=high,
        rounds=tuple(one / other for one, other in pairs),
        is_apart=not pairs,
        busy=frozenset(side for side, one in ((-1, reference), (1, device)) if one.other_processes),
        shared=0
        if reference.device == device.device
        else _is_shared(device) - _is_shared(reference),
        doubts=tuple(dict.fromkeys(doubt.word for doubt in doubts)),
        remedies=tuple(dict.fromkeys(TIMING_REMEDIES[doubt.kind] for doubt in doubts)),
        kinds=frozenset(doubt.kind for doubt in doubts),
        is_wrong=False in (reference.verified, device.verified),
    )


def next_steps(comparisons: Iterable[Comparison]) -> str:
    """Return the steps that would decide unclear comparisons, as a sentence; empty if none."""
    steps = dict.fromkeys(step for each in comparisons for step in each.remedies)
    text = " and ".join(steps)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def no_verdict(comparisons: Iterable[Comparison]) -> str:
    """Return the sentences about results that other programs kept without a winner."""
    steps = next_steps(comparisons)
    return f"No verdict: other programs keep this PC busy. {steps} Then run it again."


def _is_shared(result: RunFinished) -> bool:
    return bool(result.other_processes) and not is_cpu(result.device)


def _has_time(result: RunFinished) -> bool:
    return result.median_s > 0 and result.ci95_s[0] > 0


# ── several ways to do the same work ─────────────────────────────────────────────────────────────


# Values that mean nothing without the option's name.
_PLAIN = frozenset({"on", "off", "yes", "no", "default"})


def label_of(options: Mapping[str, str], workload: WorkloadDescription) -> str:
    """Return the options of a run as a label: ``AMP on``, ``pinned, worker processes: 2``."""
    titles = {option.name: option.title for option in workload.options}
    parts: list[str] = []
    for name, value in options.items():
        title = titles.get(name, name)
        if value.isdecimal():
            inside = f"{title[0].lower()}{title[1:]}" if parts else title
            parts.append(f"{inside}: {int(value):,}")
        else:
            parts.append(f"{title} {value}" if value in _PLAIN else value_words(value))
    return ", ".join(parts) or workload.title


def compare_ways(results: Mapping[str, RunFinished]) -> str:
    """Return the fastest option and the one with the least memory; empty for fewer than two.

    Args:
        results: runs of one workload with different options, by their labels.
    """
    if len(results) < 2:
        return ""
    wrong = [label for label, result in results.items() if result.verified is False]
    right = {label: result for label, result in results.items() if result.verified is not False}
    sentences = [f"Don't trust {_named(wrong)}: wrong results."] if wrong else []
    if len(right) > 1:
        sentences += [*_speed(right), *_memory(right)]
    sentences += _doubts_of(right)
    return " ".join(sentences)


def _speed(results: Mapping[str, RunFinished]) -> Iterable[str]:
    beside = _beside_fastest(results)
    if not beside:
        return
    ordered = _by_time(results)
    fastest, slowest = ordered[0], ordered[-1]
    least_s = results[fastest].median_s
    close = {label: each for label, each in beside.items() if each.outcome is not Claim.FASTER}
    if len(close) == len(beside):
        if all(each.outcome is Claim.EQUAL for each in close.values()):
            yield f"All options take about the same time, {format_duration(least_s)} per call."
            return
        nearest = close[min(close, key=ordered.index)]
        if nearest.is_kept_busy:
            yield no_verdict(close.values())
            return
        yield f"Too close to call: {nearest.reason}."
        yield from filter(None, [next_steps(close.values())])
        return
    if slowest in close:
        slowest = max(beside.keys() - close.keys(), key=ordered.index)
    lead = f"{format_duration(least_s)} per call: {beside[slowest].times} as fast as “{slowest}”."
    if not close:
        yield f"The fastest is “{fastest}”, {lead}"
        return
    yield f"“{fastest}” takes {lead}"
    yield f"Too close to call: {_named([fastest, *close])}."


def are_ways_kept_busy(results: Mapping[str, RunFinished]) -> bool:
    """Return whether no option is named the fastest because of other programs."""
    right = {label: result for label, result in results.items() if result.verified is not False}
    beside = _beside_fastest(right).values()
    return bool(beside) and all(each.is_kept_busy for each in beside)


def _by_time(results: Mapping[str, RunFinished]) -> list[str]:
    return sorted(results, key=lambda label: results[label].median_s)


def _beside_fastest(results: Mapping[str, RunFinished]) -> dict[str, Comparison]:
    """Return the comparison of each other option with the fastest one."""
    fastest, *others = _by_time(results) or [""]
    return {
        label: compared
        for label in others
        if (compared := compare(results[label], results[fastest])) is not None
    }


def _memory(results: Mapping[str, RunFinished]) -> Iterable[str]:
    peaks = {
        label: result.peak_allocated_bytes
        for label, result in results.items()
        if result.peak_allocated_bytes is not None
    }
    if len(peaks) == len(results) and min(peaks.values()) < max(peaks.values()):
        least, most = min(peaks, key=peaks.__getitem__), max(peaks, key=peaks.__getitem__)
        yield (
            f"“{least}” uses least memory, {format_bytes(peaks[least])} at its peak; “{most}” "
            f"uses most, {format_bytes(peaks[most])}."
        )


def _doubts_of(results: Mapping[str, RunFinished]) -> Iterable[str]:
    """Yield the first doubt of each run, each doubt once, with the runs it applies to."""
    labels_of: dict[str, list[str]] = {}
    for label, result in results.items():
        doubts = stamp_of(result).doubts
        if doubts:
            labels_of.setdefault(doubts[0], []).append(label)
    reasons = (
        doubt if len(labels) == len(results) else f"{doubt} ({', '.join(labels)})"
        for doubt, labels in labels_of.items()
    )
    if labels_of:
        yield f"Some results are doubtful: {'; '.join(reasons)}."


def _named(labels: Sequence[str]) -> str:
    return listed(f"“{label}”" for label in labels)


def findings_of(results: Mapping[str, RunFinished]) -> Sequence[str]:
    """Return the findings of the runs, each sentence once, with its run's label; and pauses."""
    labels_of: dict[str, list[str]] = {}
    for label, result in results.items():
        for finding in result.findings:
            labels_of.setdefault(finding, []).append(label)
    paused = pauses_sentence(result.pauses for result in results.values())
    return [
        *((paused,) if paused else ()),
        *(
            finding if len(labels) == len(results) else f"{', '.join(labels)}: {finding}"
            for finding, labels in labels_of.items()
        ),
    ]
