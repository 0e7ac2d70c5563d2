import pytest

from gpu_studio.core.devices.peaks import (
    card_peaks,
    published_peaks,
)


def peaks_of(capability, sm_count, sm_mhz, bus_bits, memory_mhz, name=""):
    return card_peaks(capability, sm_count, sm_mhz * 1e6, bus_bits, memory_mhz * 1e6, name)


@pytest.mark.parametrize(
    ("card", "dtype", "tflops"),
    [
        (("7.0", 80, 1530, 4096, 877, "Tesla V100"), "float16", 125.3),
        (("8.0", 108, 1410, 5120, 1215, "NVIDIA A100"), "bfloat16", 312),
        (("8.6", 82, 1695, 384, 9751, "NVIDIA GeForce RTX 3090"), "float16", 71),
        (("8.9", 128, 2520, 384, 10501, "NVIDIA GeForce RTX 4090"), "bfloat16", 165.2),
        (("9.0", 132, 1830, 5120, 2619, "NVIDIA H100"), "float16", 989.4),
        (("12.0", 170, 2407, 512, 14001, "NVIDIA GeForce RTX 5090"), "float16", 209.5),
        # NVIDIA's figures for H20 are for 1.85 GHz.
        (("9.0", 78, 1850, 6144, 2619, "NVIDIA H20"), "float16", 148),
        (("8.0", 70, 1410, 4096, 1458, "NVIDIA CMP 170HX"), "float16", 6.3),
        (("8.0", 70, 1410, 4096, 1458, "NVIDIA CMP 170HX"), "float32", 0.395),
    ],
)
def test_tensor_cores_are_what_the_maker_states(card, dtype, tflops):
    found = peaks_of(*card)
    best = found.best_flops("float32", tf32=True) if dtype == "tf32" else found.best_flops(dtype)
    assert best == pytest.approx(tflops * 1e12, rel=0.005)


@pytest.mark.parametrize(
    ("name", "has_them"),
    [
        ("NVIDIA GeForce GTX 1660 Ti", False), ("NVIDIA GeForce MX450", False),
        ("NVIDIA T1000", False), ("NVIDIA CMP 30HX", False),
        ("Tesla T4", True), ("NVIDIA GeForce RTX 2060", True),
    ],
)  # fmt: skip
def test_a_turing_without_tensor_cores(name, has_them):
    found = peaks_of("7.5", 24, 1770, 192, 6000, name)
    assert bool(found.tensor_core_flops) is has_them


def test_what_is_not_known_is_none_and_never_zero():
    assert peaks_of("99.0", 1, 1, 1, 1) is None
    without_bus = card_peaks("6.1", 3, 1.4e9, None, None)
    assert without_bus.memory_bytes_per_s is None
    assert peaks_of("8.7", 16, 1000, 256, 3000).best_flops("float64") is None


# ── AMD's and Intel's cards, by what their makers publish ─────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "float32", "float16", "gb_per_s"),
    [
        # AMD's and Intel's own figures.
        ("AMD Radeon RX 7900 XTX", 61.4e12, 122.8e12, 960),
        ("AMD Radeon RX 6600", 8.93e12, 17.86e12, 224),
        ("AMD Radeon RX 9070 XT", 48.7e12, 195e12, 645),
        ("Intel(R) Arc(TM) B580 Graphics", 14.6e12, 116.7e12, 456),
    ],
)
def test_the_peaks_are_the_makers(name, float32, float16, gb_per_s):
    found = published_peaks(name)
    assert found is not None
    assert found.best_flops("float32") == pytest.approx(float32, rel=0.01)
    assert found.best_flops("float16") == pytest.approx(float16, rel=0.01)
    assert found.memory_bytes_per_s == gb_per_s * 1e9


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
