"""The plan of the standard run: its order, its turns, and that it keeps its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.standard import (
    DEVICE_S,
    LOAD,
    LOAD_S,
    STANDARD_1,
    StandardPlan,
)
from tests.fakes.run_answers import finished, samples_of

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload


def made(plan: StandardPlan, beyond_s: float) -> tuple[list[list[RunWorkload]], float]:
    """Make a plan's runs, each ``beyond_s`` longer than its time; return groups and seconds."""
    results: list[RunFinished] = []
    groups, spent_s = [], 0.0
    requests = plan.requests(1)
    while requests:
        groups.append(requests)
        group_s = sum(one.budget_s + beyond_s for one in requests)
        spent_s += group_s
        results += [finished(one, samples_of(one), elapsed_s=group_s) for one in requests]
        requests = plan.next_requests(results, len(results) + 1)
    return groups, spent_s


def test_items_are_in_order_and_the_devices_of_one_take_turns() -> None:
    plan = StandardPlan(["cuda:0", "cpu"])
    groups, _ = made(plan, 1.0)
    asked = [[(plan.keys[one.run_id], one.device) for one in group] for group in groups]
    items = [
        [(item.key, device) for device in ("cpu", "cuda:0") if item.runs_on(device)]
        for item in STANDARD_1
    ]
    assert asked == [*items, [(LOAD, "cpu")], [(LOAD, "cuda:0")]]


def test_run_ids_are_unique() -> None:
    groups, _ = made(StandardPlan(["cpu", "cuda:0", "cuda:1"]), 1.0)
    ids = [one.run_id for group in groups for one in group]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "devices", [["cpu"], ["cuda:0"], ["cpu", "cuda:0"], ["cpu", "cuda:0", "cuda:1"]]
)
@pytest.mark.parametrize("beyond_s", [0.3, 1.5, 3.0])
def test_the_whole_keeps_its_time(devices: list[str], beyond_s: float) -> None:
    plan = StandardPlan(devices)
    groups, spent_s = made(plan, beyond_s)
    assert spent_s <= 1.05 * DEVICE_S * len(devices)
    assert [group[0].budget_s for group in groups[-len(devices) :]] == [LOAD_S] * len(devices)


def test_a_slow_pc_gets_shorter_items_and_the_same_work() -> None:
    slow, quick = (made(StandardPlan(["cpu"]), beyond_s)[0] for beyond_s in (5.0, 0.3))
    for one, other in zip(slow[1:-1], quick[1:-1], strict=True):
        assert one[0].budget_s < other[0].budget_s
        assert msgspec.structs.replace(one[0], budget_s=other[0].budget_s) == other[0]


def test_what_fails_costs_the_others_nothing() -> None:
    plan = StandardPlan(["cuda:0"])
    requests = plan.requests(1)
    budgets = []
    while requests:
        budgets.append(requests[0].budget_s)
        requests = plan.next_requests((), len(budgets) + 1)
    assert budgets == [*(item.budget_s for item in STANDARD_1), LOAD_S]
