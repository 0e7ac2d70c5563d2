"""Robust statistics of timing samples: what every table, verdict and export reports.

Timings are skewed to the right (an interruption only ever adds time), so the median and the
interquartile range describe them, and the interval is the distribution-free one of order
statistics (NIST/SEMATECH e-Handbook of Statistical Methods, section 7.2), over groups of
neighbours where the order of the samples is known (`grouped_interval`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_Z_95 = 1.959963984540054
_EXACT_UP_TO = 60
# Clocks and other programs drift over some milliseconds, so samples that are closer are not
# independent; medians of consecutive groups this long nearly are.
GROUP_S = 0.02
# The range of five values holds the median in 94 of 100 cases only.
SAMPLES_OF_AN_INTERVAL = 6
FEWEST_GROUPS = 10


class Summary(msgspec.Struct, frozen=True):
    """What a set of samples says, in seconds a call."""

    samples: int
    median_s: float
    iqr_s: float
    ci95_s: tuple[float, float]
    minimum_s: float
    maximum_s: float
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
    """Return the summary of samples, seconds each, or None where there are none."""
    ordered = sorted(samples_s)
    if not ordered:
        return None
    return Summary(
        samples=len(ordered),
        median_s=quantile(ordered, 0.5),
        iqr_s=quantile(ordered, 0.75) - quantile(ordered, 0.25),
        ci95_s=median_interval(ordered),
        minimum_s=ordered[0],
        maximum_s=ordered[-1],
        p99_s=quantile(ordered, 0.99),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of an ascending sequence, linear between neighbours (Hyndman-Fan 7)."""
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % order-statistic interval of the median of an ascending sequence.

    With fewer than six samples no pair of order statistics reaches 95 %; the whole range is
    returned then, which is wide, and so says the truth.
    """
    count = len(ordered)
    rank = _lower_rank(count)
    return ordered[rank], ordered[count - 1 - rank]


def grouped_interval(samples_s: Sequence[float], calls_per_sample: int = 1) -> tuple[float, float]:
    """Return the 95 % interval of the median of samples in the order they were taken.

    The order-statistic interval of the medians of consecutive groups of some 20 ms: that of the
    samples themselves would take neighbours, which drift together, for independent witnesses, and
    would be far too narrow. Where the samples last less than ten such groups, ten shorter ones are
    made; where there are fewer than ten samples, each is a group.

    Args:
        samples_s: seconds a call, at least one.
        calls_per_sample: how many calls each is the mean of.
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
    # The last group is not whole: it is left out here, not of the median.
    low, high = median_interval(sorted(medians_s))
    middle = quantile(sorted(samples_s), 0.5)
    return min(low, middle), max(high, middle)


def _lower_rank(count: int) -> int:
    """Return the largest index r for which [x(r), x(n-1-r)] holds the median with 95 % or more.

    The median lies below x(r) when at most r of n fair coins fell "below".
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
    """Return the seconds above which a sample is marked as an outlier; it is never dropped.

    Three IQR above the median: of normally distributed samples one in 40,000 lies there.
    """
    return summary.median_s + 3 * max(summary.iqr_s, 1e-12)
