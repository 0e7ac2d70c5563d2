"""The limits of a check that are computed."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.check.stages import is_enough, ram_bytes, reserve_bytes
from tests.fakes.check_answers import COVERAGE

MIB = 1 << 20


@pytest.mark.parametrize(
    ("free_mib", "linux_mib", "windows_mib"),
    [(1000, 128, 128), (1900, 152, 152), (4000, 320, 320), (8000, 400, 600), (24000, 400, 600)],
)
def test_the_reserve_grows_with_the_card(free_mib: int, linux_mib: int, windows_mib: int) -> None:
    free = free_mib * MIB
    assert reserve_bytes(free, is_windows=False) // MIB == linux_mib
    assert reserve_bytes(free, is_windows=True) // MIB == windows_mib


def test_a_card_of_2_gb_is_tested_in_more_than_85_percent() -> None:
    free = 1900 * MIB
    assert (free - reserve_bytes(free)) / free > 0.9


@pytest.mark.parametrize(
    ("free_mib", "tested_mib"),
    [(400, 40), (2000, 64), (2100, 64), (2400, 352), (8000, 2000), (64_000, 16_000)],
)
def test_a_quarter_of_the_free_ram_is_tested_and_2_gib_stay_free(
    free_mib: int, tested_mib: int
) -> None:
    assert ram_bytes(free_mib * MIB) == tested_mib * MIB


def test_under_three_quarters_of_the_free_memory_is_partial() -> None:
    enough = msgspec.structs.replace(COVERAGE, tested_bytes=75, free_bytes=100, total_bytes=120)
    assert is_enough(enough)
    assert not is_enough(msgspec.structs.replace(enough, tested_bytes=74))


def test_under_half_of_all_memory_is_partial_even_if_no_more_was_free() -> None:
    desktop = msgspec.structs.replace(COVERAGE, total_bytes=200, free_bytes=110, tested_bytes=100)
    assert is_enough(desktop)
    assert not is_enough(msgspec.structs.replace(desktop, tested_bytes=99))
