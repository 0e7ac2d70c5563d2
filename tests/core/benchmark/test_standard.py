"""The plan of the standard run: its order, its turns, and that it keeps its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.benchmark.standard import (
    DEVICE_S,
    LOAD,
    LOAD_S,
    STANDARD_1,
    StandardPlan,
    standard_s,
)
from gpu_studio.core.messages.run_messages import MOST_IN_TURNS

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunWorkload

CARDS = [f"cuda:{index}" for index in range(16)]


def groups_of(plan: StandardPlan) -> list[list[RunWorkload]]:
    """Return all runs of a plan; those of a group take turns."""
    groups = []
    while requests := plan.next_requests(sum(map(len, groups)) + 1):
        groups.append(requests)
    return groups


def test_all_items_of_all_devices_take_turns_and_the_loads_are_alone() -> None:
    plan = StandardPlan(["cuda:0", "cpu"])
    asked = [[(plan.keys[one.run_id], one.device) for one in group] for group in groups_of(plan)]
    items = [
        (item.key, device)
        for item in STANDARD_1
        for device in ("cpu", "cuda:0")
        if item.runs_on(device)
    ]
    assert asked == [items, [(LOAD, "cpu")], [(LOAD, "cuda:0")]]


def test_a_pc_with_many_cards_takes_as_many_turns_as_an_engine_makes() -> None:
    groups = groups_of(StandardPlan([*CARDS, "cpu"]))
    assert max(map(len, groups)) <= MOST_IN_TURNS
    assert {one.device for group in groups for one in group} == {*CARDS, "cpu"}
    ids = [one.run_id for group in groups for one in group]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("devices", [["cpu"], ["cuda:0"], ["cpu", "cuda:0", "cuda:1"]])
def test_no_item_takes_longer_than_the_whole_has_time_for(devices: list[str]) -> None:
    items, *loads = groups_of(StandardPlan(devices))
    longest_s = [one.longest_s for one in items if one.longest_s is not None]
    assert len(longest_s) == len(items)
    assert all(one.budget_s < (one.longest_s or 0.0) for one in items)
    loads_s = sum(load[0].budget_s for load in loads)
    assert sum(longest_s) + loads_s == pytest.approx(standard_s(devices))
    assert loads_s == pytest.approx(LOAD_S * len(devices))


def test_the_time_left_is_what_the_whole_has_less_what_passed() -> None:
    plan = StandardPlan(["cpu", "cuda:0"])
    assert plan.left_s(10.0) == pytest.approx(2 * DEVICE_S - 10.0)
    assert plan.left_s(3 * DEVICE_S) > 0, "late: it is not over yet"
