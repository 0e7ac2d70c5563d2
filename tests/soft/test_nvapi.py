"""The hot spot and the memory's temperature through a soft NVAPI, read by the sensor reader."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.hardware.client import SensorReader
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.soft.conftest import MakePc
    from tests.softcards.cards import SoftPc

HEAT = {"temperature_c": 60, "hotspot_c": 72, "memory_temperature_c": 84}
Heat = list[tuple[float | None, float | None]]


@pytest.fixture
def start() -> Iterator[Any]:
    readers: list[SensorReader] = []

    def begin(pc: SoftPc) -> tuple[Inventory, Iterator[Inventory | Reading]]:
        readers.append(SensorReader(period_s=0.05, environment=pc.env))
        stream = readers[-1].readings()
        inventory = next(stream)
        assert isinstance(inventory, Inventory)
        return inventory, stream

    yield begin
    for reader in readers:
        reader.close()


def heat_of(stream: Iterator[Inventory | Reading]) -> Heat:
    """The whole degrees of each card's hot spot and memory, in a reading that began after this."""
    *_, reading = itertools.islice(stream, 3)
    assert isinstance(reading, Reading)
    assert all(card.error is None for card in reading.cards)
    assert all(card.telemetry.temperature_c is not None for card in reading.cards)
    return [
        tuple(
            None if value is None else int(value)
            for value in (card.telemetry.hotspot_c, card.telemetry.memory_temperature_c)
        )
        for card in reading.cards
    ]  # type: ignore[return-value]


def test_each_card_has_its_own_whatever_nvapi_s_order(soft_pc: MakePc, start: Any) -> None:
    pc = soft_pc(GT_1030, GTX_1650, RTX_3060)
    pc.set(0, temperature_c=40, hotspot_c=47)
    pc.set(1, hotspot_c=None)
    pc.set(2, **HEAT)
    inventory, stream = start(pc)
    assert inventory.cards[2].telemetry.hotspot_c is not None
    assert heat_of(stream) == [(47, None), (None, None), (72, 84)]
    pc.set(2, hotspot_c=95)
    assert heat_of(stream)[2] == (95, 84)


@pytest.mark.parametrize(
    ("fields", "heat"),
    [({"nvapi_info": 0}, (None, None)), ({"nvapi": 0}, (None, None)),
     ({"hotspot_c": 255}, (None, 84)), ({"hotspot_c": 0}, (None, 84)),
     ({"hotspot_c": 57}, (None, 84)), ({"memory_temperature_c": 255}, (72, None))],
    ids=["no info", "not listed", "255", "0", "below the core", "memory 255"],
)  # fmt: skip
def test_what_does_not_fit_is_not_reported(
    soft_pc: MakePc, start: Any, fields: dict[str, int], heat: tuple[float | None, float | None]
) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, **{**HEAT, **fields})
    _, stream = start(pc)
    assert heat_of(stream) == [heat]


def test_blackwell_reports_its_memory_only(soft_pc: MakePc, start: Any) -> None:
    pc = soft_pc(replace(RTX_3060, name="NVIDIA GeForce RTX 5070", compute_capability="12.0"))
    pc.set(0, **HEAT)
    _, stream = start(pc)
    assert heat_of(stream) == [(None, 84)]


@pytest.mark.parametrize(
    ("function", "options"),
    [("NvAPI_Initialize", {"code": -1}), ("NvAPI_Initialize", {"hang": True}),
     ("NvAPI_GPU_ThermChannelGetStatus", {"code": -104}),
     ("NvAPI_GPU_ThermChannelGetStatus", {"code": 11}),
     ("NvAPI_GPU_ThermChannelGetInfo", {"hang": True})],
    ids=["fails", "hangs", "refuses", "crashes", "hangs later"],
)  # fmt: skip
def test_a_broken_nvapi_costs_the_readings_nothing(
    soft_pc: MakePc, start: Any, function: str, options: dict[str, Any]
) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, **HEAT)
    pc.fault(function, **options)
    _, stream = start(pc)
    assert heat_of(stream) == [(None, None)]


def test_a_call_that_hangs_later_ends_the_hot_spot_and_nothing_else(
    soft_pc: MakePc, start: Any
) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, **HEAT)
    _, stream = start(pc)
    assert heat_of(stream) == [(72, 84)]
    pc.fault("NvAPI_GPU_ThermChannelGetStatus", hang=True)
    assert heat_of(stream) == [(None, None)]
    pc.clear_faults()
    assert heat_of(stream) == [(None, None)]
