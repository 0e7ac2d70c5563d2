"""The sensor reader and the terminal on soft cards: a real NVML client, answers from a script."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.hardware.client import SensorReader
from tests.patience import PATIENCE_S, until
from tests.softcards.cards import MIB, NOT_AVAILABLE, Other, SoftPc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.soft.conftest import MakePc

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


def test_a_sensor_that_is_refused_later_becomes_none(
    soft_pc: MakePc, read: Callable[[SoftPc], Read]
):
    pc = soft_pc(RTX_3060)
    _, stream, _ = read(pc)
    assert later(stream).cards[0].telemetry.power_w == 12.5
    pc.set(0, power_mw=None, used_bytes=NOT_AVAILABLE)
    telemetry = later(stream).cards[0].telemetry
    assert telemetry.power_w is None
    assert telemetry.memory_used_bytes is None
    assert telemetry.fan_percent == 35


def test_one_card_of_two_is_lost(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(GTX_1650, RTX_3060)
    _, stream, _ = read(pc)
    pc.set(1, lost=1)
    saved, lost = later(stream).cards
    assert saved.error is None
    assert lost.error is not None
    assert "lost" in lost.error


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


def test_a_name_that_is_not_utf_8(soft_pc: MakePc, read: Callable[[SoftPc], Read]):
    pc = soft_pc(RTX_3060)
    pc.set(0, name=b"NVIDIA \xf8\xff")
    _, _, inventory = read(pc)
    assert inventory.cards[0].name == "NVIDIA card"
    assert inventory.cards[0].cuda_cores == 3584


def test_a_driver_call_that_never_returns_does_not_hold_the_window(
    soft_pc: MakePc, read: Callable[[SoftPc], Read]
):
    pc = soft_pc(RTX_3060)
    reader, stream, _ = read(pc)
    seen: list[Reading] = []
    listening = threading.Thread(target=lambda: seen.extend(stream))
    listening.start()
    pc.fault("nvmlDeviceGetPowerUsage", hang=True)

    def silent_readings() -> list[Reading]:
        return [one for one in seen if isinstance(one, Reading) and one.cards[0].error_code]

    until(silent_readings)
    silent = silent_readings()
    assert silent[-1].cards[0].error_code == "silent"
    assert silent[-1].cpu.memory_used_bytes
    assert reader.pid is not None
    child = psutil.Process(reader.pid)
    assert child.is_running()
    reader.close()
    listening.join(PATIENCE_S)
    assert not listening.is_alive()
    assert not child.is_running()


@pytest.mark.cuda13
def test_the_terminal_names_the_build_for_a_card_without_code(soft_pc: MakePc):
    pc = soft_pc(GT_1030, RTX_3060)
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "devices"],
        env=pc.env, capture_output=True, encoding="utf-8", timeout=400, check=True,
    )  # fmt: skip
    assert "no code for your GT 1030 (6.1): install the cu126 build" in done.stdout
    assert "PyTorch can use your RTX 3060." in done.stdout


def test_the_terminal_benchmarks_a_card(soft_pc: MakePc):
    pc = soft_pc(RTX_3060)
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "bench", "elementwise", "--size", "64", "--device",
         "cpu,cuda:0", "--budget-s", "0.05", "--json"],
        env=pc.env, capture_output=True, encoding="utf-8", timeout=400, check=False,
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    results = {event["device"]: event for event in events if event["type"] == "run_finished"}
    assert results["cpu"]["verified"] is True
    # A soft card computes nothing, and the check says so.
    assert results["cuda:0"]["verified"] is False
    assert results["cuda:0"]["device_name"] == "NVIDIA GeForce RTX 3060"
    assert results["cuda:0"]["conditions"]["other_processes"] is False
    assert done.returncode == 0
