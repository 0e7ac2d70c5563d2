import msgspec
import pytest

from gpu_studio.core.check.stages import (
    CHECK_MINUTES,
    STAGES,
    in_order,
    is_enough,
    ram_bytes,
    reserve_bytes,
    round_count,
    round_s,
    stage_budget_s,
    stage_title,
    stages_for,
)
from gpu_studio.core.messages.check_messages import STAGE_NAMES
from tests.fakes.check_answers import COVERAGE


@pytest.mark.parametrize("minutes", CHECK_MINUTES)
def test_the_stages_of_all_rounds_take_the_chosen_time(minutes: int) -> None:
    one_s = sum(stage_budget_s(stage.name, round_s(minutes)) for stage in STAGES)
    assert one_s * round_count(minutes) == pytest.approx(60 * minutes)
    assert round_count(minutes) == (16 if minutes == 480 else 1)


def test_a_minute_has_no_time_for_what_is_about_pytorch() -> None:
    assert stages_for(1) == ("load", "compute", "memory", "link")
    assert stages_for(6) == stages_for(480) == STAGE_NAMES


def test_a_stage_of_an_older_record_has_its_title() -> None:
    assert stage_title("cool", "cuda:0") == "Cool down"
    assert stage_title("steps", "cpu") == "Load in steps"
    assert in_order(("link", "steps", "load", "cool", "load")) == ("load", "link")


MIB = 1 << 20


@pytest.mark.parametrize(
    ("free_mib", "linux_mib", "windows_mib"),
    [(1000, 128, 128), (1900, 152, 152), (4000, 320, 320), (8000, 400, 600), (24000, 400, 600)],
)
def test_the_reserve_grows_with_the_card(free_mib: int, linux_mib: int, windows_mib: int) -> None:
    free = free_mib * MIB
    assert reserve_bytes(free, is_windows=False) // MIB == linux_mib
    assert reserve_bytes(free, is_windows=True) // MIB == windows_mib


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
