"""Ratios of interleaved measurements, with a bootstrap interval: what every script here prints."""

import os
import platform
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_RESAMPLES = 4000


class Ratio(NamedTuple):
    """A median of ratios and the interval that holds 95 % of its resamples."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} (95 % interval {self.low:.3f} to {self.high:.3f})"


def paired_ratio(measured: Sequence[float], reference: Sequence[float]) -> Ratio:
    """Return the median of measured / reference over pairs that were taken side by side.

    Args:
        measured: shape (n,), any unit.
        reference: shape (n,), the same unit; the i-th was taken just before or after the i-th
            measured one, so that both saw the same state of the machine.
    """
    ratios = np.asarray(measured, np.float64) / np.asarray(reference, np.float64)
    generator = np.random.default_rng(0)
    picks = generator.integers(0, len(ratios), (_RESAMPLES, len(ratios)))
    medians = np.median(ratios[picks], axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return Ratio(float(np.median(ratios)), float(low), float(high))


def describe_machine() -> str:
    """Return the machine of the figures, and how busy it was with other work."""
    busy = "not told"
    if hasattr(os, "getloadavg"):
        busy = ", ".join(f"{load:.2f}" for load in os.getloadavg())
    qt = os.environ.get("QT_QPA_PLATFORM", "the desktop's own")
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} logical cores, Python "
        f"{platform.python_version()}, Qt platform {qt}; load in the last 1, 5, 15 min: {busy}"
    )


def verdict(value: float, target: float) -> str:
    return f"target at most {target:g}: {'reached' if value <= target else 'MISSED'}"
