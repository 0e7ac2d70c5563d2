from collections.abc import Iterator

import pytest
import torch

from gpu_studio.core.devices.access import PcProbed
from gpu_studio.core.devices.cards import torch_card_of
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.devices.findings import find
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed, RequestFailed
from gpu_studio.core.messages.memory_messages import EmptyCache, MemoryRead, ReadMemory
from gpu_studio.core.messages.placement_messages import DeviceUsed, UseDevice
from gpu_studio.engine.device import resolve, uuid_of
from gpu_studio.engine.devices.description import describe_engine
from gpu_studio.engine.devices.probe_client import probe_pc
from gpu_studio.hardware.reader import PcSensors
from tests.gpu.conftest import Ask, StartEngine


@pytest.fixture(scope="module")
def sensors() -> Iterator[PcSensors]:
    one = PcSensors()
    yield one
    one.rest()


@pytest.fixture(scope="module")
def inventory(sensors: PcSensors) -> Inventory:
    return sensors.inventory()


def test_the_driver_and_pytorch_mean_the_same_card(card: str, inventory: Inventory) -> None:
    device = inventory.find(card)
    assert device is not None
    result = torch.cuda.get_device_properties(resolve(card))
    assert device.uuid == uuid_of(resolve(card))
    assert device.name == result.name
    assert device.compute_capability == f"{result.major}.{result.minor}"
    assert device.multiprocessors in (None, result.multi_processor_count)
    # The driver keeps a part of what is on the board.
    assert result.total_memory <= device.memory_total_bytes < 1.2 * result.total_memory


def test_a_cards_sensors_are_read(card: str, sensors: PcSensors, inventory: Inventory) -> None:
    uuid = uuid_of(resolve(card))
    (reading,) = [one for one in sensors.reading().cards if one.uuid == uuid]
    assert reading.error is None
    now = reading.telemetry
    assert 0 < now.memory_used_bytes <= inventory.find(card).memory_total_bytes
    assert now.temperature_c is None or 0 < now.temperature_c < 120
    assert now.sm_clock_mhz is None or now.sm_clock_mhz > 0
    assert now.utilization_percent is None or 0 <= now.utilization_percent <= 100


def test_using_a_card_makes_it_the_current_one(card: str, start_engine: StartEngine) -> None:
    (used,) = start_engine().ask(UseDevice(device=card))
    assert isinstance(used, DeviceUsed)
    assert (used.device, used.uuid) == (card, uuid_of(resolve(card)))


def test_what_is_put_on_cuda_goes_to_the_card_in_use(card: str, ask: Ask) -> None:
    index = int(card.removeprefix("cuda:"))
    try:
        ask(UseDevice(device=card))
        assert torch.cuda.current_device() == index
        assert str(torch.empty(1, device="cuda").device) == card
    finally:
        torch.cuda.set_device(0)


def test_a_card_that_is_shown_alone_is_cuda_0(card: str, start_engine: StartEngine) -> None:
    uuid = uuid_of(resolve(card))
    one = start_engine(EngineEnvironment(visible_devices=uuid))
    (described,) = one.ask(DescribeEngine())
    assert isinstance(described, EngineDescribed)
    assert (described.device_count, described.visible_devices) == (1, uuid)
    (used,) = one.ask(UseDevice(device="cuda:0"))
    assert used.uuid == uuid
    (failed,) = one.ask(UseDevice(device="cuda:1"))
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is FailureKind.NO_SUCH_DEVICE


def test_describing_and_reading_take_nothing_of_a_card(
    card: str, start_engine: StartEngine
) -> None:
    one = start_engine()
    (described,) = one.ask(DescribeEngine())
    assert described.cuda_available
    assert described.cuda_reason is None
    (read,) = one.ask(ReadMemory(device=card))
    assert isinstance(read, MemoryRead)
    assert (read.allocated_bytes, read.total_bytes) == (None, None)
    (emptied,) = one.ask(EmptyCache(device=card))
    assert (emptied.before.releasable_bytes, emptied.freed_bytes) == (None, 0)


def test_a_card_that_is_not_there_is_named_with_those_that_are(ask: Ask) -> None:
    failed = ask(ReadMemory(device="cuda:77"))[-1]
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is FailureKind.NO_SUCH_DEVICE
    assert "there are cpu, cuda:0" in failed.failure.message


@pytest.fixture(scope="module")
def probed() -> PcProbed:
    return probe_pc()


@pytest.fixture(scope="module")
def read_inventory() -> Inventory:
    sensors = PcSensors()
    found = sensors.inventory()
    sensors.rest()
    return found


def test_a_kernel_runs_on_every_card_that_the_suite_uses(
    card: str, probed: PcProbed, read_inventory: Inventory
) -> None:
    device = read_inventory.find(card)
    assert device is not None
    (tried,) = (one for one in probed.cards if torch_card_of(device, (one.card,)))
    assert tried.outcome == "ran", tried.message
    assert tried.card.compute_capability == device.compute_capability


@pytest.mark.real_kernels
def test_the_sum_is_right(probed: PcProbed) -> None:
    assert not [one.card.name for one in probed.cards if one.is_sum_wrong]


def test_the_card_can_be_used_and_is_what_it_says(
    card: str, probed: PcProbed, read_inventory: Inventory
) -> None:
    device = read_inventory.find(card)
    assert device is not None
    findings = find(read_inventory, describe_engine(), probe=probed)
    codes = {finding.code for finding in findings if finding.device_uuid == device.identity}
    assert "ok" in codes
    assert "not_as_named" not in codes, [finding.sentence for finding in findings]
