"""The peaks of AMD's and Intel's cards, from what their makers publish."""

from __future__ import annotations

import pytest

from gpu_studio.core.devices.peaks import published_peaks


@pytest.mark.parametrize(
    ("name", "float32", "float16", "gb_per_s"),
    [
        # AMD's and Intel's own figures.
        ("AMD Radeon RX 7900 XTX", 61.4e12, 122.8e12, 960),
        ("AMD Radeon RX 6600", 8.93e12, 17.86e12, 224),
        ("AMD Radeon RX 5700 XT", 9.75e12, 19.5e12, 448),
        ("AMD Radeon RX 9070 XT", 48.7e12, 195e12, 645),
        ("Intel(R) Arc(TM) B580 Graphics", 14.6e12, 116.7e12, 456),
    ],
)
def test_the_peaks_are_the_makers(name, float32, float16, gb_per_s):
    peaks = published_peaks(name)
    assert peaks is not None
    assert peaks.best_flops("float32") == pytest.approx(float32, rel=0.01)
    assert peaks.best_flops("float16") == pytest.approx(float16, rel=0.01)
    assert peaks.memory_bytes_per_s == gb_per_s * 1e9


def test_an_unpublished_clock_leaves_the_bandwidth():
    peaks = published_peaks("Intel(R) Arc(TM) A380 Graphics")
    assert peaks is not None
    assert peaks.best_flops("float32") is None
    assert peaks.memory_bytes_per_s == 186e9


@pytest.mark.parametrize(
    "name",
    [
        "AMD Radeon RX 6600M", "AMD Radeon RX 6800S", "AMD Radeon RX 7900M", "AMD Radeon RX 580",
        "AMD Radeon Graphics", "Intel(R) Arc(TM) A770M Graphics", "Intel(R) Iris(R) Xe Graphics",
        "AMD Radeon RX 7600 XT Laptop GPU", "NVIDIA GeForce RTX 3060", "",
    ],
)  # fmt: skip
def test_no_other_card_has_a_known_ceiling(name):
    assert published_peaks(name) is None
