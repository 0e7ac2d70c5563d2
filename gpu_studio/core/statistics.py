"""Robust statistics of timing samples, for every table, verdict and export.

Timings are skewed to the right, because an interruption can only add time. So the median and the
interquartile range describe them.

A run is measured in rounds, because the samples of one set-up know nothing of what differs between
two: where the tensors lie, the clock, other programs. The interval of a median, and that of a
ratio, comes from the differences between rounds. Neighboring rounds may drift together. So the
variance is that of Kiefer, Vogelsang and Bunzel ("Simple Robust Testing of Regression Hypotheses",
Econometrica 68, 2000), which grows with such a drift, and its critical values are those of few
independent rounds: with a correlation of 0.7 between neighbors, some 86 of 100 intervals hold. For
a median, it is the variance of the share of samples below it (Woodruff's interval, 1952).
`tests/core/test_statistics.py` simulates the coverage.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROUNDS = 12
"""The rounds of a run. With fewer than `FEWEST_ROUNDS`, the interval is the whole range."""
FEWEST_ROUNDS = 6
FEWEST_PAIRS = 3
"""With fewer pairs of rounds in turns, two results have no winner."""
_MOST_MEDIANS = 240
# The 95 % quantile of |mean| / `_drift_error` for this many independent normal values, simulated
# (2,000,000 series each; the limit for many is 4.77).
_CRITICAL = {
    3: 8.428, 4: 6.392, 5: 5.703, 6: 5.400, 7: 5.207, 8: 5.091, 9: 5.028, 10: 4.985, 11: 4.941,
    12: 4.911,
}  # fmt: skip


def planned_rounds(timed_s: float, call_s: float, longest_s: float = math.inf) -> int:
    """Return how many rounds a run has: each has time for two calls, or for one if they are few.

    Args:
        timed_s: the seconds that are timed.
        call_s: the seconds of a call.
        longest_s: the most seconds of a round.
    """
    rounds = int(timed_s / max(min(timed_s / ROUNDS, longest_s), 2 * call_s) + 1e-6)
    if rounds < FEWEST_ROUNDS:
        rounds = min(FEWEST_ROUNDS, int(timed_s / call_s + 1e-6))
    return max(1, rounds)


class Summary(msgspec.Struct, frozen=True):
    """The statistics of a set of samples, in seconds per call."""

    samples: int
    median_s: float
    iqr_s: float
    p99_s: float

    @property
    def relative_iqr(self) -> float:
        """The spread as a share of the median."""
        return self.iqr_s / self.median_s if self.median_s else 0.0


def summarize(samples_s: Iterable[float]) -> Summary | None:
    """Return the summary of samples in seconds, or None if there are none."""
    ordered = sorted(samples_s)
    if not ordered:
        return None
    return Summary(
        samples=len(ordered),
        median_s=quantile(ordered, 0.5),
        iqr_s=quantile(ordered, 0.75) - quantile(ordered, 0.25),
        p99_s=quantile(ordered, 0.99),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of an ascending sequence, linear between neighbors (Hyndman-Fan 7)."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def interval_of_rounds(
    samples_s: Sequence[float], starts: Sequence[int] = ()
) -> tuple[float, float]:
    """Return the 95 % interval of the median of samples in the order of their measurement.

    Args:
        samples_s: seconds per call, at least one sample.
        starts: the index of the first sample of each round; empty if there were no rounds: then
            twelve consecutive pieces of equal length stand for them.
    """
    rounds = _split(samples_s, starts)
    ordered = sorted(samples_s)
    middle = quantile(ordered, 0.5)
    if len(rounds) < FEWEST_ROUNDS:
        low, high = ordered[0], ordered[-1]
    else:
        half = _half_width([_share_below(each, middle) for each in rounds])
        low, high = (quantile(ordered, min(max(0.5 + h, 0.0), 1.0)) for h in (-half, half))
    return min(low, middle), max(high, middle)


def round_medians(samples_s: Sequence[float], starts: Sequence[int]) -> tuple[float, ...]:
    """Return the median of each round; of more than `_MOST_MEDIANS`, neighbors are joined.

    Args:
        samples_s: as in `interval_of_rounds`.
        starts: likewise.
    """
    return tuple(quantile(sorted(each), 0.5) for each in _split(samples_s, starts, _MOST_MEDIANS))


def ratio_interval(
    numerators_s: Sequence[float], denominators_s: Sequence[float], ratio: float
) -> tuple[float, float]:
    """Return the 95 % interval of a ratio of two medians that were measured in turns.

    A round of one and its neighbor of the other meet the same disturbances, which cancel out.

    Args:
        numerators_s: the medians of at least `FEWEST_PAIRS` rounds above the line, all positive.
        denominators_s: as many below the line.
        ratio: the ratio of the medians of all samples, which is within the result.
    """
    pairs = [math.log(a / b) for a, b in zip(numerators_s, denominators_s, strict=True)]
    logs = [math.fsum(each) / len(each) for each in _split(pairs, ())]
    mean, half = math.fsum(logs) / len(logs), _half_width(logs)
    return min(math.exp(mean - half), ratio), max(math.exp(mean + half), ratio)


def _split(
    samples_s: Sequence[float], starts: Sequence[int], most: int = ROUNDS
) -> list[Sequence[float]]:
    """Return the rounds; neighbors are joined where there are more than ``most``."""
    count = min(len(starts) or len(samples_s), most)
    if starts:
        first = [starts[len(starts) * index // count] for index in range(count)]
    else:
        first = [len(samples_s) * index // count for index in range(count)]
    return [samples_s[begin:end] for begin, end in itertools.pairwise([*first, len(samples_s)])]


def _share_below(samples_s: Sequence[float], middle: float) -> float:
    """Return the share of samples below a value; half of those equal to it count."""
    below = sum((sample < middle) + (sample <= middle) for sample in samples_s)
    return below / 2 / len(samples_s)


def _half_width(values: Sequence[float]) -> float:
    """Return half the width of the 95 % interval of the mean of 3 to 12 values in their order."""
    return _CRITICAL[len(values)] * _drift_error(values)


def _drift_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean whose values may drift together."""
    count, total = len(values), math.fsum(values)
    sums = itertools.accumulate(value - total / count for value in values)
    return math.sqrt(2 * math.fsum(each * each for each in sums) / count**3)


def outlier_bound(summary: Summary) -> float:
    """Return the seconds above which a sample is marked as an outlier; none is ever dropped.

    The bound is three IQR above the median. Of normally distributed samples, 1 in 40,000 exceeds
    it.
    """
    return summary.median_s + 3 * max(summary.iqr_s, 1e-12)
