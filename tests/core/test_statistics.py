from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.statistics import (
    interval_of_rounds,
    median_interval,
    outlier_bound,
    quantile,
    ratio_interval,
    round_medians,
    summarize,
)

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200)


def missed(count: int, rank: int) -> float:
    """Return the exact chance that [x(rank), x(count-1-rank)] misses the median."""
    return 2 * sum(math.comb(count, below) for below in range(rank + 1)) / 2**count


@given(SAMPLES, st.floats(0, 1))
def test_quantiles_are_numpys(samples: list[float], share: float) -> None:
    assert quantile(sorted(samples), share) == pytest.approx(np.quantile(samples, share), rel=1e-9)


@given(SAMPLES)
def test_a_summary_is_numpys(samples: list[float]) -> None:
    summary = summarize(samples)
    assert summary is not None
    low, middle, high, p99 = np.percentile(samples, [25, 50, 75, 99])
    assert summary.samples == len(samples)
    assert summary.median_s == pytest.approx(middle)
    assert summary.iqr_s == pytest.approx(high - low, abs=1e-9 * max(samples))
    assert summary.p99_s == pytest.approx(p99)


@given(SAMPLES)
def test_the_interval_holds_the_median_and_lies_in_the_samples(samples: list[float]) -> None:
    low, high = median_interval(sorted(samples))
    assert min(samples) <= low <= quantile(sorted(samples), 0.5) <= high <= max(samples)
    assert low in samples
    assert high in samples


@given(SAMPLES, st.floats(1e-3, 1e3))
def test_a_summary_scales_with_its_unit(samples: list[float], factor: float) -> None:
    plain, scaled = summarize(samples), summarize(factor * sample for sample in samples)
    assert plain is not None
    assert scaled is not None
    assert scaled.median_s == pytest.approx(factor * plain.median_s)
    assert scaled.relative_iqr == pytest.approx(plain.relative_iqr, rel=1e-9, abs=1e-9)


def test_no_samples_have_no_summary() -> None:
    assert summarize([]) is None


def test_the_interval_covers_the_median_in_at_least_95_of_100_cases() -> None:
    for count in (*range(6, 130), 200, 333, 500, 999):
        low, high = median_interval([float(index) for index in range(count)])
        rank = int(low)
        assert high == count - 1 - rank, count
        assert missed(count, rank) <= 0.05, count
        # and is as narrow as that allows, or one order statistic wider than that
        assert missed(count, rank + 2) > 0.05, count


@pytest.mark.parametrize("count", [1, 2, 5])
def test_too_few_samples_give_their_whole_range(count: int) -> None:
    ordered = [float(index) for index in range(count)]
    assert median_interval(ordered) == (0.0, count - 1.0)
    assert missed(count, 0) > 0.05


@pytest.mark.parametrize("count", [8, 35, 150])
def test_the_intervals_coverage_by_simulation(count: int) -> None:
    """Skewed samples as timings are: the interval needs no bell curve."""
    generator = random.Random(20250301)
    trials = 4000
    median = math.log(2)  # of the exponential distribution
    hits = 0
    for _ in range(trials):
        low, high = median_interval(sorted(generator.expovariate(1) for _ in range(count)))
        hits += low <= median <= high
    # 95 % less three standard errors of the simulation; not everything is covered, either
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials) <= hits / trials <= 0.995


def test_relative_numbers_are_shares_of_the_median() -> None:
    summary = summarize([90.0, 95.0, 100.0, 105.0, 110.0])
    assert summary is not None
    assert summary.relative_iqr == pytest.approx(0.10)
    nothing = summarize([0.0])
    assert nothing is not None
    assert nothing.relative_iqr == 0.0


def test_outliers_lie_three_iqr_above_the_median() -> None:
    summary = summarize([1.0, 2.0, 3.0, 4.0, 5.0])
    assert summary is not None
    assert outlier_bound(summary) == pytest.approx(3.0 + 3 * 2.0)


@given(SAMPLES)
def test_the_interval_of_rounds_holds_the_median(samples: list[float]) -> None:
    low, high = interval_of_rounds(samples)
    assert min(samples) <= low <= np.median(samples) * (1 + 1e-9)
    assert np.median(samples) * (1 - 1e-9) <= high <= max(samples)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_too_few_rounds_give_the_whole_range(count: int) -> None:
    samples = [1.0 + 0.01 * index for index in range(10 * count)]
    starts = [10 * index for index in range(count)]
    assert interval_of_rounds(samples, starts) == (samples[0], samples[-1])
    assert interval_of_rounds(samples[:count]) == (samples[0], samples[count - 1])


def test_rounds_that_differ_widen_the_interval() -> None:
    """The samples of a round are all alike, so the interval is that of the rounds."""
    levels = [1.0, 1.3, 0.9, 1.2, 1.0, 1.1, 0.8, 1.3]
    samples = [level for level in levels for _ in range(100)]
    low, high = interval_of_rounds(samples, range(0, 800, 100))
    assert high - low >= 0.2
    alike = [1.0 + 0.01 * (index % 10) for index in range(800)]
    low, high = interval_of_rounds(alike, range(0, 800, 100))
    assert high - low < 0.02


def test_the_medians_of_rounds_may_differ_in_length() -> None:
    assert round_medians([1.0, 2.0, 3.0, 8.0, 9.0], [0, 3]) == (2.0, 8.5)


def test_what_disturbs_both_alike_cancels_out_of_their_ratio() -> None:
    generator = random.Random(4)
    drift = [generator.uniform(1, 3) for _ in range(12)]
    slow, fast = [2 * each for each in drift], [each * generator.gauss(1, 0.01) for each in drift]
    low, high = ratio_interval(slow, fast, 2.0)
    assert 1.9 < low < 2 < high < 2.1
    assert interval_of_rounds(slow)[1] / interval_of_rounds(slow)[0] > 1.2


def test_the_ratio_of_many_rounds_has_an_interval_as_well() -> None:
    generator = random.Random(5)
    slices = [[generator.gauss(1, 0.05) for _ in range(100)] for _ in range(2)]
    low, high = ratio_interval(*slices, ratio=1.0)
    assert 0.9 < low < 1 < high < 1.1


def test_fewer_pairs_of_rounds_have_a_wider_interval() -> None:
    ratios = [0.9, 1.1, 1.0] * 4
    widths = []
    for pairs in (3, 6, 12):
        low, high = ratio_interval(ratios[:pairs], [1.0] * pairs, 1.0)
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.2
