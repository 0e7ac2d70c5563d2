"""Shares of ceilings that can be worked out by hand."""

from __future__ import annotations

import pytest

from gpu_studio.core.benchmark.ceilings import (
    Ceilings,
    Limit,
    MeasuredCeilings,
    card_ceilings,
    cpu_ceilings,
    limit_of,
    share_of_ceiling,
)
from gpu_studio.core.pc.peaks import card_peaks
from gpu_studio.core.pc.silicon_facts import peaks_of
from tests.core.benchmark.cards import GT_1030

SLOW = Ceilings(arithmetic_flops=1e12, memory_bytes_per_s=1e11, link_bytes_per_s=4e9)


def test_the_ceiling_that_allows_the_least_decides() -> None:
    # 1e9 operations take 1 ms, 2e8 bytes take 2 ms
    share = share_of_ceiling(SLOW, 4e-3, operations=1e9, bytes_moved=2e8)
    assert share is not None
    assert (share.share, share.limit) == (pytest.approx(0.5), Limit.MEMORY)
    assert share.ceiling.replace("\u202f", " ") == "memory bandwidth, 100 GB/s"
    busy = share_of_ceiling(SLOW, 4e-3, operations=3e9, bytes_moved=2e8)
    assert busy is not None
    assert (busy.share, busy.limit) == (pytest.approx(0.75), Limit.ARITHMETIC)
    assert busy.ceiling.replace("\u202f", " ") == "peak arithmetic, 1.00 TFLOP/s"
    sent = share_of_ceiling(SLOW, 4e-3, bytes_moved=2e8, link_bytes=1e7)
    assert sent is not None
    assert (sent.share, sent.limit) == (pytest.approx(0.625), Limit.LINK)


@pytest.mark.parametrize("limit", Limit)
def test_a_ceiling_s_words_name_it(limit: Limit) -> None:
    amounts = {
        Limit.ARITHMETIC: "operations",
        Limit.MEMORY: "bytes_moved",
        Limit.LINK: "link_bytes",
    }
    share = share_of_ceiling(SLOW, 1.0, **{amounts[limit]: 1.0})
    assert share is not None
    assert limit_of(share.ceiling) is limit


def test_what_is_not_known_gives_no_share() -> None:
    assert share_of_ceiling(Ceilings(), 1.0, operations=1.0, bytes_moved=1.0) is None
    assert share_of_ceiling(SLOW, 1.0) is None
    assert share_of_ceiling(SLOW, 0.0, operations=1.0) is None
    half = share_of_ceiling(Ceilings(memory_bytes_per_s=1e9), 1.0, operations=1e15, bytes_moved=1e9)
    assert half is not None
    assert half.limit is Limit.MEMORY
    assert limit_of("") is None


def test_a_cpu_s_ceilings_are_what_was_measured_in_the_dtype() -> None:
    measured = MeasuredCeilings(copy_bytes_per_s=2e10, matmul_flops={"float32": 1e11})
    assert cpu_ceilings(measured, "float32") == Ceilings(
        arithmetic_flops=1e11, memory_bytes_per_s=2e10
    )
    assert cpu_ceilings(measured, "float16").arithmetic_flops is None


def test_a_card_s_ceilings_follow_from_its_facts() -> None:
    peaks = peaks_of(GT_1030, None)
    assert peaks == card_peaks("6.1", 3, 1.468e9, 64, 3.004e9)
    assert peaks is not None
    ceilings = card_ceilings(peaks, "float64", link=(3, 4))
    assert ceilings.arithmetic_flops == pytest.approx(1.13e12 / 32, rel=0.01)
    assert ceilings.memory_bytes_per_s == pytest.approx(48.06e9, rel=0.001)
    assert ceilings.link_bytes_per_s == pytest.approx(3.94e9, rel=0.01)
    assert card_ceilings(peaks, "float64").link_bytes_per_s is None
