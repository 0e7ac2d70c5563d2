"""Simulated timings whose true median is known: how often does the interval contain it?

A run has twelve rounds in 2 s. Between two of them, another run works for half a second. `LEVEL` is
the part of the noise that drifts: independent from sample to sample, or AR(1) with a correlation
time. What comes less often than a few times in a run cannot be in its
interval: with a correlation time of 1 s, 88 to 92 of 100 do.
"""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpu_studio.core.statistics import (
    ROUNDS,
    interval_of_rounds,
    outlier_bound,
    quantile,
    ratio_interval,
    summarize,
)

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200)


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


def test_outliers_lie_three_iqr_above_the_median() -> None:
    summary = summarize([1.0, 2.0, 3.0, 4.0, 5.0])
    assert summary is not None
    assert outlier_bound(summary) == pytest.approx(3.0 + 3 * 2.0)


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


def test_what_disturbs_both_alike_cancels_out_of_their_ratio() -> None:
    generator = random.Random(4)
    drift = [generator.uniform(1, 3) for _ in range(12)]
    slow, fast = [2 * each for each in drift], [each * generator.gauss(1, 0.01) for each in drift]
    low, high = ratio_interval(slow, fast, 2.0)
    assert 1.9 < low < 2 < high < 2.1
    assert interval_of_rounds(slow)[1] / interval_of_rounds(slow)[0] > 1.2


BUDGET_S, BETWEEN_S = 2.0, 0.5
RUNS = 1000
# 95 % ± 2 %, and three standard errors of the simulation on either side.
LEAST, MOST = 0.93 - 0.02, 0.97 + 0.02

Samples = NDArray[np.float64]


def in_rounds(count: int, sample_s: float, level) -> Samples:
    """Return log times that are measured, not those between; shape (runs, rounds, samples)."""
    step_s = max(sample_s, 2e-3)
    per_round, between = max(1, round(BUDGET_S / ROUNDS / step_s)), round(BETWEEN_S / step_s)
    whole = ROUNDS * (per_round + between)
    return level(count, whole, step_s).reshape(count, ROUNDS, -1)[:, :, :per_round]


def independent(generator: np.random.Generator):
    return lambda count, steps, _step_s: generator.normal(0, 0.05, (count, steps))


def skewed(generator: np.random.Generator):
    """Interruptions only add time: half a bell curve, whose median is 0 here."""
    return lambda count, steps, _step_s: np.abs(generator.normal(0, 0.05, (count, steps))) - 0.0337


def drifting(generator: np.random.Generator, correlation_s: float):
    def level(count: int, steps: int, step_s: float) -> Samples:
        keep = np.exp(-step_s / correlation_s)
        now, levels = generator.normal(size=count), np.empty((count, steps))
        for index in range(steps):
            now = keep * now + np.sqrt(1 - keep * keep) * generator.normal(size=count)
            levels[:, index] = now
        return 0.05 * levels + generator.normal(0, 0.02, (count, steps))

    return level


def coverage(logs: Samples) -> float:
    """Return the share of runs whose interval contains the true median, which is 1."""
    runs, rounds, per_round = logs.shape
    starts = range(0, rounds * per_round, per_round)
    times = np.exp(logs.reshape(runs, -1)).tolist()
    intervals = [interval_of_rounds(samples_s, starts) for samples_s in times]
    return sum(low <= 1 <= high for low, high in intervals) / runs


@pytest.mark.parametrize("sample_s", [1e-4, 0.01, 0.02, 0.1])
@pytest.mark.parametrize("kind", ["independent", "skewed", "0.1 s", "0.3 s"])
def test_the_interval_covers_the_median_in_95_of_100_runs(kind: str, sample_s: float):
    generator = np.random.default_rng([len(kind), int(sample_s * 1e4)])
    level = {
        "independent": lambda: independent(generator),
        "skewed": lambda: skewed(generator),
        "0.1 s": lambda: drifting(generator, 0.1),
        "0.3 s": lambda: drifting(generator, 0.3),
    }[kind]()
    assert LEAST <= coverage(in_rounds(RUNS, sample_s, level)) <= MOST


@pytest.mark.parametrize("correlation_s", [0.1, 0.3, 1.0, 3.0])
def test_two_alike_in_turns_have_a_winner_in_at_most_5_of_100_pairs(correlation_s: float):
    """One PC drifts; both have their turns on it: A B, B A, A B, …"""
    generator = np.random.default_rng(int(10 * correlation_s))
    per_turn, between, step_s = 16, 10, 0.01
    slots = 2 * ROUNDS
    drift = drifting(generator, correlation_s)(RUNS, slots * (per_turn + between), step_s)
    medians = np.median(drift.reshape(RUNS, slots, -1)[:, :, :per_turn], axis=2)
    is_first = np.arange(slots) % 4 % 3 == 0
    left, right = np.exp(medians[:, is_first]), np.exp(medians[:, ~is_first])
    winners = 0
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        low, high = ratio_interval(one, other, 1.0)
        winners += not low < 1 < high
    assert winners / RUNS <= 0.05 + 0.02


def test_a_planted_ratio_is_found():
    generator = np.random.default_rng(9)
    fast = np.exp(generator.normal(0, 0.02, (200, ROUNDS)))
    slow = 1.2 * np.exp(generator.normal(0, 0.02, (200, ROUNDS)))
    intervals = [
        ratio_interval(a, b, 1.2) for a, b in zip(slow.tolist(), fast.tolist(), strict=True)
    ]
    assert all(low > 1.1 and high < 1.3 for low, high in intervals)
