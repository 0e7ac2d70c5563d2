"""Simulated timings whose true median is known: how often does the interval contain it?

A run has twelve rounds in 2 s. Between two of them, another run works for half a second. `LEVEL` is
the part of the noise that drifts: independent from sample to sample, AR(1) with a correlation time,
or bursts of another program. What comes less often than a few times in a run cannot be in its
interval: with a correlation time of 1 s, or three bursts of 0.1 s in a run, 88 to 92 of 100 do.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_studio.core.statistics import ROUNDS, interval_of_rounds, ratio_interval

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


def bursty(generator: np.random.Generator, share: float, burst_s: float):
    """Another program makes everything twice as slow for a share of the time."""
    pause_s = burst_s * (1 - share) / share
    noise = 0.15
    mixture = generator.normal(0, noise, 400_000)
    mixture += np.where(generator.random(400_000) < share, np.log(2), 0)
    median = np.median(mixture)

    def level(count: int, steps: int, step_s: float) -> Samples:
        is_on, levels = generator.random(count) < share, np.empty((count, steps))
        for index in range(steps):
            lasts = np.exp(-step_s / np.where(is_on, burst_s, pause_s))
            is_on = np.where(generator.random(count) < lasts, is_on, ~is_on)
            levels[:, index] = is_on * np.log(2)
        return levels + generator.normal(0, noise, (count, steps)) - median

    return level


def coverage(logs: Samples) -> float:
    """Return the share of runs whose interval contains the true median, which is 1."""
    runs, rounds, per_round = logs.shape
    starts = range(0, rounds * per_round, per_round)
    times = np.exp(logs.reshape(runs, -1)).tolist()
    intervals = [interval_of_rounds(samples_s, starts) for samples_s in times]
    return sum(low <= 1 <= high for low, high in intervals) / runs


@pytest.mark.parametrize("sample_s", [1e-4, 0.01, 0.02, 0.1])
@pytest.mark.parametrize("kind", ["independent", "skewed", "0.1 s", "0.3 s", "bursts"])
def test_the_interval_covers_the_median_in_95_of_100_runs(kind: str, sample_s: float):
    generator = np.random.default_rng([len(kind), int(sample_s * 1e4)])
    level = {
        "independent": lambda: independent(generator),
        "skewed": lambda: skewed(generator),
        "0.1 s": lambda: drifting(generator, 0.1),
        "0.3 s": lambda: drifting(generator, 0.3),
        "bursts": lambda: bursty(generator, 0.1, max(0.02, sample_s)),
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


@pytest.mark.parametrize("correlation_s", [1.0, 3.0, 10.0])
def test_two_runs_agree_whose_rounds_are_spread_over_a_minute(correlation_s: float):
    """As those of the standard run; with its rounds in one piece, 94, 79 and 59 of 100 do."""
    generator = np.random.default_rng(3)
    step_s, per_round, apart, whole = 0.05, 5, 60, 1200
    steps = drifting(generator, correlation_s)(RUNS // 2, 2 * whole, step_s)
    in_round = [np.arange(per_round) + number * (per_round + apart) for number in range(ROUNDS)]
    starts = range(0, ROUNDS * per_round, per_round)
    first, second = (
        [interval_of_rounds(samples_s, starts) for samples_s in np.exp(steps[:, places]).tolist()]
        for places in (np.concatenate(in_round), np.concatenate(in_round) + whole)
    )
    agreeing = sum(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(first, second, strict=True))
    assert agreeing / len(first) >= 0.95


def test_a_planted_ratio_is_found():
    generator = np.random.default_rng(9)
    fast = np.exp(generator.normal(0, 0.02, (200, ROUNDS)))
    slow = 1.2 * np.exp(generator.normal(0, 0.02, (200, ROUNDS)))
    intervals = [
        ratio_interval(a, b, 1.2) for a, b in zip(slow.tolist(), fast.tolist(), strict=True)
    ]
    assert all(low > 1.1 and high < 1.3 for low, high in intervals)
