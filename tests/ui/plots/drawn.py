"""What a plot has drawn, and long series with a few spikes for it."""

import numpy as np

from gpu_studio.core.series import Series


def drawn(plot, key):
    return plot._curves[key].item.getOriginalDataset()


def series_of(values):
    series = Series()
    series.append(values)
    return series


def spiky(count=200_000):
    values = np.random.default_rng(3).normal(1.0, 0.01, count)
    values[[9, count // 2, count - 1]] = 5.0
    return series_of(values)
