"""The stages' shares of a check's time."""

from __future__ import annotations

import pytest

from gpu_studio.core.check.stages import (
    CHECK_MINUTES,
    STAGES,
    in_order,
    round_count,
    round_s,
    stage_budget_s,
)
from gpu_studio.core.messages.check_messages import STAGE_NAMES


@pytest.mark.parametrize("minutes", CHECK_MINUTES)
def test_the_stages_of_all_rounds_take_the_chosen_time(minutes: int) -> None:
    one_s = sum(stage_budget_s(stage.name, round_s(minutes)) for stage in STAGES)
    assert one_s * round_count(minutes) == pytest.approx(60 * minutes)


def test_only_an_overnight_check_has_several_rounds() -> None:
    assert [round_count(minutes) for minutes in CHECK_MINUTES] == [1, 1, 16]


@pytest.mark.parametrize("minutes", CHECK_MINUTES)
def test_the_load_takes_at_most_a_third_of_a_check(minutes: int) -> None:
    load_s = stage_budget_s("load", round_s(minutes)) * round_count(minutes)
    assert 0.3 * 60 * minutes < load_s <= 60 * minutes / 3


def test_stages_run_in_their_order_and_once() -> None:
    assert in_order(["memory", "load", "memory"]) == ("load", "memory")
    assert in_order(STAGE_NAMES) == STAGE_NAMES
