"""The sensor reader and the terminal on soft cards: a real NVML client, answers from a script."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.hardware.client import SensorReader
from tests.patience import PATIENCE_S
from tests.soft.conftest import MakePc
from tests.softcards.cards import MIB, Other, SoftPc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

Read = tuple[SensorReader, "Iterator[Inventory | Reading]", Inventory]


@pytest.fixture
def read() -> Iterator[Callable[[SoftPc], Read]]:
    readers: list[SensorReader] = []

    def start(pc: SoftPc) -> Read:
        reader = SensorReader(period_s=0.05, environment=pc.env)
        readers.append(reader)
        stream = reader.readings()
        inventory = next(stream)
        assert isinstance(inventory, Inventory)
        return reader, stream, inventory

    yield start
    for reader in readers:
        reader.close()


def later(stream: Iterator[Inventory | Reading]) -> Reading:
    """A reading that began after this call: the next one may be under way already."""
    *_, reading = itertools.islice(stream, 3)
    assert isinstance(reading, Reading)
    return reading


def test_the_cards_are_found_with_their_facts(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(GT_1030, RTX_3060)
    _, _, inventory = read(pc)
    old, new = inventory.cards
    assert [old.uuid, new.uuid] == [card.uuid for card in pc.cards]
    assert (old.name, old.compute_capability, old.architecture) == (
        "NVIDIA GeForce GT 1030", "6.1", "Pascal",
    )  # fmt: skip
    assert (old.memory_total_bytes, new.memory_total_bytes) == (2048 * MIB, 12288 * MIB)
    assert (old.multiprocessors, old.cuda_cores) == (3, 384)
    assert (new.multiprocessors, new.cuda_cores) == (28, 3584)
    assert (old.display_active, new.display_active) == (True, False)
    assert (new.pcie_generation_max, new.pcie_width_max) == (4, 16)
    assert old.telemetry.power_w is None
    assert old.telemetry.power_limit_w == 19.0
    assert [card.address for card in inventory.cards] == ["cuda:0", "cuda:1"]
    assert inventory.driver.error is None


def test_sensors_move(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(RTX_3060)
    _, stream, inventory = read(pc)
    assert inventory.cards[0].telemetry.temperature_c == 41
    pc.set(0, temperature_c=77, gpu_percent=55, pstate=2, event_reasons=0x24, power_mw=77000)
    pc.set_others(0, Other(1, 300 * MIB), Other(1, 2 * MIB, graphics=True))
    (card,) = later(stream).cards
    now = card.telemetry
    assert (now.temperature_c, now.utilization_percent, now.pstate) == (77, 55, 2)
    assert (now.clock_event_reasons, now.power_w) == (0x24, 77)
    (process,) = card.processes
    assert (process.pid, process.kind) == (1, "compute and graphics")
    assert process.memory_bytes == 300 * MIB


def until_found(stream: Iterator[Inventory | Reading]) -> Inventory:
    """The next inventory: the bus is looked at every other second."""
    deadline_s = time.monotonic() + PATIENCE_S
    for event in stream:
        if isinstance(event, Inventory):
            return event
        assert time.monotonic() < deadline_s, "waited in vain"
    raise AssertionError("the reader ended")


def test_a_card_that_appears_and_goes_is_followed(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(GTX_1650)
    _, stream, _ = read(pc)
    added = pc.add(RTX_3060)
    inventory = until_found(stream)
    assert [card.uuid for card in inventory.cards] == [card.uuid for card in pc.cards]
    assert [card.uuid for card in later(stream).cards][1] == added.uuid
    pc.take_out(0)
    (left,) = until_found(stream).cards
    assert (left.uuid, left.driver_index) == (added.uuid, 0)


def test_cards_with_one_uuid_are_two(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    same = "GPU-12345678-1234-1234-1234-123456789abc"
    pc = soft_pc(replace(GTX_1650, uuid=same), replace(RTX_3060, uuid=same))
    _, stream, inventory = read(pc)
    pc.set(1, temperature_c=77)
    assert [card.name for card in inventory.cards] == [
        "NVIDIA GeForce GTX 1650",
        "NVIDIA GeForce RTX 3060",
    ]
    values = {card.uuid: card.telemetry.temperature_c for card in later(stream).cards}
    assert list(values) == [card.pci_bus_id for card in pc.cards]
    assert values[pc.cards[1].pci_bus_id] == 77 != values[pc.cards[0].pci_bus_id]


def test_numbers_that_cannot_be_are_not_reported(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(RTX_3060)
    pc.set(0, used_bytes=977 << 30, temperature_c=2**31 - 1, sm_mhz=2**31, power_mw=2**31)
    _, stream, _ = read(pc)
    (card,) = later(stream).cards
    now = card.telemetry
    assert (now.memory_used_bytes, now.temperature_c) == (None, None)
    assert (now.sm_clock_mhz, now.power_w) == (None, None)
    assert card.error is None
    pc.set(0, nvml_total_bytes=0)
    now = later(stream).cards[0].telemetry
    assert (now.memory_used_bytes, now.memory_free_bytes) == (None, None)


@pytest.mark.parametrize(("code", "kind"), [(18, "driver_updated"), (999, "unknown")])
def test_a_driver_that_answers_nothing_any_more_is_reported(
    code: int, kind: str, soft_pc: MakePc, read: Callable[[SoftPc], Read]
):
    pc = soft_pc(RTX_3060)
    _, stream, _ = read(pc)
    assert later(stream).cards[0].error is None
    pc.fault("nvmlDevice*", code)
    (card,) = later(stream).cards
    assert card.error
    assert card.error_code == kind
    pc.clear_faults()
    assert later(stream).cards[0].error is None


def test_a_divided_card_says_so(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(replace(RTX_3060, sensors={"mig": 1}))
    _, _, inventory = read(pc)
    assert inventory.cards[0].mig_enabled


@pytest.mark.parametrize(
    ("code", "problem"), [(9, "not_running"), (18, "driver_updated"), (999, "unknown")]
)
def test_a_driver_that_does_not_start(
    code: int, problem: str, soft_pc: MakePc, read: Callable[[SoftPc], Read]
):
    pc = soft_pc(RTX_3060)
    pc.fault("nvmlInit_v2", code)
    _, stream, inventory = read(pc)
    assert inventory.driver.error_code == problem
    assert inventory.driver.error
    assert later(stream).cards == ()


# ── the hot spot and the memory's temperature, through a soft NVAPI

HEAT = {"temperature_c": 60, "hotspot_c": 72, "memory_temperature_c": 84}
Heat = list[tuple[float | None, float | None]]


def heat_of(stream: Iterator[Inventory | Reading]) -> Heat:
    """The whole degrees of each card's hot spot and memory, in a reading that began after this."""
    reading = later(stream)
    assert all(card.error is None for card in reading.cards)
    assert all(card.telemetry.temperature_c is not None for card in reading.cards)
    return [
        tuple(
            None if value is None else int(value)
            for value in (card.telemetry.hotspot_c, card.telemetry.memory_temperature_c)
        )
        for card in reading.cards
    ]  # type: ignore[return-value]


def test_each_card_has_its_own_whatever_nvapi_s_order(
    soft_pc: MakePc, read: Callable[[SoftPc], Read]
) -> None:
    pc = soft_pc(GT_1030, GTX_1650, RTX_3060)
    pc.set(0, temperature_c=40, hotspot_c=47)
    pc.set(1, hotspot_c=None)
    pc.set(2, **HEAT)
    _, stream, inventory = read(pc)
    assert inventory.cards[2].telemetry.hotspot_c is not None
    assert heat_of(stream) == [(47, None), (None, None), (72, 84)]
    pc.set(2, hotspot_c=95)
    assert heat_of(stream)[2] == (95, 84)


@pytest.mark.parametrize(
    ("function", "options"),
    [("NvAPI_Initialize", {"code": -1}), ("NvAPI_Initialize", {"hang": True}),
     ("NvAPI_GPU_ThermChannelGetStatus", {"code": -104}),
     ("NvAPI_GPU_ThermChannelGetStatus", {"code": 11}),
     ("NvAPI_GPU_ThermChannelGetInfo", {"hang": True})],
    ids=["fails", "hangs", "refuses", "crashes", "hangs later"],
)  # fmt: skip
def test_a_broken_nvapi_costs_the_readings_nothing(
    soft_pc: MakePc, read: Callable[[SoftPc], Read], function: str, options: dict[str, Any]
) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, **HEAT)
    pc.fault(function, **options)
    _, stream, _ = read(pc)
    assert heat_of(stream) == [(None, None)]


def test_a_call_that_hangs_later_ends_the_hot_spot_and_nothing_else(
    soft_pc: MakePc, read: Callable[[SoftPc], Read]
) -> None:
    pc = soft_pc(RTX_3060)
    pc.set(0, **HEAT)
    _, stream, _ = read(pc)
    assert heat_of(stream) == [(72, 84)]
    pc.fault("NvAPI_GPU_ThermChannelGetStatus", hang=True)
    assert heat_of(stream) == [(None, None)]
    pc.clear_faults()
    assert heat_of(stream) == [(None, None)]
