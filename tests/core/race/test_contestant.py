"""Who races whom, and what each is called."""

from __future__ import annotations

import pytest

from gpu_studio.core.race.contestant import (
    Contestant,
    contestant_name,
    race_requests,
    usual_contestants,
)
from gpu_studio.core.race.pictures import GROW, PICTURES
from tests.core.race.racing import CARD, CPU, ONE, over


def test_the_usual_race_is_that_of_the_cpu_against_a_card_or_of_its_threads():
    assert usual_contestants(["cuda:0", "cuda:1"], 4) == (CPU, CARD)
    assert usual_contestants([], 4) == (ONE, CPU)
    assert usual_contestants([], 1) == (ONE,)


def test_every_contestant_runs_the_same_work():
    requests = race_requests(GROW, 128, [ONE, CPU, CARD], 5.0, first_number=4)
    assert [one.run_id for one in requests] == ["race-4", "race-5", "race-6"]
    assert {(one.workload, one.size, one.budget_s) for one in requests} == {("grow", 128, 5.0)}
    assert [one.race.threads for one in requests] == [1, None, None]


@pytest.mark.parametrize(
    ("contestant", "name"),
    [
        (ONE, "one CPU thread"),
        (CPU, "all 4 CPU threads"),
        (Contestant(device="cpu", threads=3), "3 CPU threads"),
        (CARD, "your GT 1030"),
    ],
)
def test_names(contestant: Contestant, name: str):
    assert contestant_name(over(contestant, 1e-3)) == name


def test_the_precision_is_named_only_if_it_differs():
    half = over(Contestant(device="cpu", dtype="float16"), 1e-3)
    assert contestant_name(half, [half]) == "all 4 CPU threads"
    assert contestant_name(half, [half, over(CPU, 1e-3)]) == "all 4 CPU threads in float16"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_every_picture_offers_its_default(picture):
    assert picture.race.default_size in picture.sizes
    assert "float32" in picture.dtypes
