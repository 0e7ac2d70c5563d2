from __future__ import annotations

import pytest

from gpu_studio.core.devices.devices import Device, Driver, Inventory


def pc(*codes, **driver):
    cards = [Device(kind="cuda", name="a card", unreadable_code=code) for code in codes]
    return Inventory(devices=(Device(kind="cpu", name="CPU"), *cards), driver=Driver(**driver))


@pytest.mark.parametrize(
    ("inventory", "is_asked"),
    [
        (pc(), False),
        (pc("no_driver", "asleep"), False),
        (pc("asleep", None), True),
        (pc("silent"), True),
        # Windows tells a card from its driver alone, which did not answer.
        (pc(is_silent=True), True),
    ],
)
def test_a_driver_is_asked_where_there_is_one_and_a_card_is_awake(inventory, is_asked):
    assert inventory.asks_driver == is_asked
