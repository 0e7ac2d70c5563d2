"""What a card can do at most, from what is told of it."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.pc.silicon_facts import peaks_of
from tests.core.benchmark.cards import GT_1030


@pytest.mark.parametrize("missing", ["compute_capability", "multiprocessors", "sm_clock_max_mhz"])
def test_a_card_that_tells_too_little_has_no_peaks(missing: str) -> None:
    assert peaks_of(msgspec.structs.replace(GT_1030, **{missing: None}), None) is None


def test_without_a_memory_clock_the_arithmetic_is_still_known() -> None:
    peaks = peaks_of(msgspec.structs.replace(GT_1030, memory_clock_max_mhz=None), None)
    assert peaks is not None
    assert peaks.memory_bytes_per_s is None
    assert peaks.best_flops("float32")
