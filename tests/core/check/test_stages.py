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
    stage_title,
    stages_for,
)
from gpu_studio.core.messages.check_messages import STAGE_NAMES


@pytest.mark.parametrize("minutes", CHECK_MINUTES)
def test_the_stages_of_all_rounds_take_the_chosen_time(minutes: int) -> None:
    one_s = sum(stage_budget_s(stage.name, round_s(minutes)) for stage in STAGES)
    assert one_s * round_count(minutes) == pytest.approx(60 * minutes)


def test_only_an_overnight_check_has_several_rounds() -> None:
    assert [round_count(minutes) for minutes in CHECK_MINUTES] == [1, 1, 16]


def test_a_minute_has_no_time_for_what_is_about_pytorch() -> None:
    assert stages_for(1) == ("load", "compute", "memory", "link")
    assert stages_for(6) == stages_for(480) == STAGE_NAMES


def test_a_stage_of_an_older_record_has_its_title() -> None:
    assert stage_title("cool", "cuda:0") == "Cool down"
    assert stage_title("steps", "cpu") == "Load in steps"
    assert in_order(("load", "steps", "cool", "link")) == ("load", "link")


def test_stages_run_in_their_order_and_once() -> None:
    assert in_order(["memory", "load", "memory"]) == ("load", "memory")
    assert in_order(STAGE_NAMES) == STAGE_NAMES
