"""Robust statistics of timing samples, for every table, verdict and export.

Timings are skewed to the right, because an interruption can only add time. So the median and the
interquartile range describe them. The interval is the distribution-free interval of order
statistics (NIST/SEMATECH e-Handbook of Statistical Methods, section 7.2), over groups of
neighbors if the order of the samples is known (`grouped_interval`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Z_95 = 1.959963984540054
_EXACT_UP_TO = 60
# Clocks and other programs drift over some milliseconds, so closer samples are not independent.
# The medians of consecutive groups of this length nearly are.
GROUP_S = 0.02
# The range of five values contains the median in only 94 of 100 cases.
SAMPLES_OF_AN_INTERVAL = 6
FEWEST_GROUPS = 10


class Summary(msgspec.Struct, frozen=True):
    """The statistics of a set of samples, in seconds per call."""

    samples: int
    median_s: float
    iqr_s: float
    ci95_s: tuple[float, float]
    p99_s: float

    @property
    def relative_iqr(self) -> float:
        """The spread as a share of the median."""
        return self.iqr_s / self.median_s if self.median_s else 0.0

    @property
    def relative_interval(self) -> float:
        """Half the width of the 95 % interval as a share of the median."""
        low, high = self.ci95_s
        return (high - low) / 2 / self.median_s if self.median_s else 0.0


def summarize(samples_s: Iterable[float]) -> Summary | None:
    """Return the summary of samples in seconds, or None if there are none."""
    ordered = sorted(samples_s)
    if not ordered:
        return None
    return Summary(
        samples=len(ordered),
        median_s=quantile(ordered, 0.5),
        iqr_s=quantile(ordered, 0.75) - quantile(ordered, 0.25),
        ci95_s=median_interval(ordered),
        p99_s=quantile(ordered, 0.99),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of an ascending sequence, linear between neighbors (Hyndman-Fan 7)."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % order-statistic interval of the median of an ascending sequence.

    With fewer than six samples, no pair of order statistics reaches 95 %. Then the result is the
    whole range, which is wide and therefore honest.
    """
    count = len(ordered)
    rank = _lower_rank(count)
    return ordered[rank], ordered[count - 1 - rank]


def grouped_interval(samples_s: Sequence[float], calls_per_sample: int = 1) -> tuple[float, float]:
    """Return the 95 % interval of the median of samples in the order of their measurement.

    The result is the order-statistic interval over the medians of consecutive groups of about
    20 ms. Neighboring samples drift together, so the interval over the samples themselves would
    treat them as independent and be far too narrow. If the samples last for fewer than ten groups,
    ten shorter groups are made; if there are fewer than ten samples, each is a group.

    Args:
        samples_s: seconds per call, at least one sample.
        calls_per_sample: the number of calls in each sample's mean.
    """
    total_s = sum(samples_s) * calls_per_sample
    group_s = min(GROUP_S, total_s / FEWEST_GROUPS)
    medians_s, group, spent_s = [], [], 0.0
    for sample_s in samples_s:
        group.append(sample_s)
        spent_s += sample_s * calls_per_sample
        if spent_s >= group_s:
            medians_s.append(quantile(sorted(group), 0.5))
            group, spent_s = [], 0.0
    # The last group is incomplete: it is left out here, but not of the median.
    low, high = median_interval(sorted(medians_s))
    middle = quantile(sorted(samples_s), 0.5)
    return min(low, middle), max(high, middle)


def _lower_rank(count: int) -> int:
    """Return the largest r for which [x(r), x(n-1-r)] contains the median with 95 % or more.

    The median is below x(r) if at most r of n fair coins came up "below".
    """
    if count > _EXACT_UP_TO:
        return max(0, math.floor(count / 2 - 0.5 - _Z_95 * math.sqrt(count) / 2))
    miss, rank = 0.0, 0
    for below in range(count // 2):
        miss += math.comb(count, below) / 2**count
        if 2 * miss > 0.05:
            break
        rank = below
    return rank


def outlier_bound(summary: Summary) -> float:
    """Return the seconds above which a sample is marked as an outlier; none is ever dropped.

    The bound is three IQR above the median. Of normally distributed samples, 1 in 40,000 exceeds
    it.
    """
    return summary.median_s + 3 * max(summary.iqr_s, 1e-12)
