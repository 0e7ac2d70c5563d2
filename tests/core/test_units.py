import math
import sys
import time
from collections.abc import Iterator

import pytest

from gpu_studio.core.units import (
    format_bytes,
    format_count,
    format_duration,
    format_percent,
    format_ratio,
    format_size,
    shown_moment,
    three_digits,
)

GAP = "\u202f"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000273, "273 µs"), (0.012, "12.0 ms"), (1.5, "1.50 s"), (273.4, "273 s"),
        (0.0, "0 s"), (9.996e-6, "10.0 µs"), (999.96e-6, "1.00 ms"), (0.99951, "1.00 s"),
        (2.5e-10, "0.250 ns"), (-0.002, "-2.00 ms"), (math.nan, "n/a"), (math.inf, "n/a"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds).replace(GAP, " ") == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1536, "1.50 KiB"), (1023 * 1024 + 512, "1024 KiB"),
     (2_097_152_000, "1.95 GiB")],
)  # fmt: skip
def test_bytes(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes).replace(GAP, " ") == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.84, "1.8 ×"), (0.553, "0.55 ×"), (0.999, "1.0 ×"), (9.96, "10 ×"), (12.34, "12.3 ×"),
     (1234.0, "1234 ×"), (0.0000123, "0.000012 ×"), (0.0, "n/a"), (math.nan, "n/a"),
     (math.inf, "n/a")],
)  # fmt: skip
def test_ratios(ratio: float, text: str) -> None:
    assert format_ratio(ratio).replace(GAP, " ") == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.742, "74 %"), (0.012, "1.2 %"), (0.0996, "10 %"), (0.0, "0.0 %"), (math.nan, "n/a")],
)
def test_percentages(share: float, text: str) -> None:
    assert format_percent(share).replace(GAP, " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.273, "0.273"), (9.996, "10.0"), (27.34, "27.3"), (2734.4, "2734"), (0.0, "0"),
     (-1.236, "-1.24"), (math.nan, "n/a"), (1e-20, "0")],
)  # fmt: skip
def test_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


def test_sizes_are_square() -> None:
    assert format_size(512).replace(GAP, " ") == "512 × 512"
    assert format_size(100_000, "{size} bodies").replace(GAP, " ") == "100,000 bodies"
    assert (
        format_size(64, "{size} pictures of 3 × {size}")
        == f"64{GAP}pictures{GAP}of{GAP}3{GAP}×{GAP}64"
    )
    # a text from a file is no template of Python's
    assert format_size(64, "{0} {size.__class__} {}") == f"{{0}}{GAP}{{size.__class__}}{GAP}{{}}"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (86_528, "86,528"), (-1000, "-1,000")]
)
def test_a_count_has_commas_between_its_thousands(number: int, text: str) -> None:
    assert format_count(number) == text


@pytest.fixture
def clock_of_nepal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "NPT-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let a process choose")
def test_a_time_is_shown_by_this_pcs_clock(clock_of_nepal: None) -> None:
    assert shown_moment("2026-03-01T05:00:00-05:00") == "2026-03-01 15:45"
    assert shown_moment("2026-03-01T10:00:00Z") == "2026-03-01 15:45"
