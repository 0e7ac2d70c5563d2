import dataclasses
import threading
from types import SimpleNamespace

import msgspec
import pytest

from gpu_studio.core.devices.devices import ASLEEP
from gpu_studio.hardware import maker_cards as module
from gpu_studio.hardware.nvidia.nvidia import NVIDIA, NvidiaReader
from gpu_studio.hardware.nvidia.nvml import Nvml
from gpu_studio.hardware.pci import DisplayAdapter
from gpu_studio.hardware.reader import PcSensors
from gpu_studio.hardware.watchdog import Watchdog
from tests.hardware.fake_nvml import GT_1030, GT_1030_UUID, FakeNvml, NVMLError
from tests.patience import PATIENCE_S, until

GT_1030_SLOT = DisplayAdapter(
    vendor_id=0x10DE, device_id=0x1D01, name="NVIDIA GeForce GT 1030", pci_bus_id="00000000:01:00.0"
)
RADEON = DisplayAdapter(vendor_id=0x1002, device_id=0x73FF, name="AMD Radeon RX 6600")
RTX_3060 = GT_1030 | {
    "Name": "NVIDIA GeForce RTX 3060",
    "UUID": "GPU-33333333-0000-0000-0000-000000000000",
    "PciInfo": SimpleNamespace(busId=b"00000000:00:10.0"),
    "CudaComputeCapability": (8, 6),
}


def asleep(adapter: DisplayAdapter) -> DisplayAdapter:
    return DisplayAdapter(**{f: getattr(adapter, f) for f in adapter.__struct_fields__}
                          | {"is_asleep": True})  # fmt: skip


def maker(library, **changes):
    return dataclasses.replace(NVIDIA, open=lambda: NvidiaReader(Nvml(library)), **changes)


def sensors(library, *adapters, sleeping=lambda _bus_id: False, visible_devices=None):
    return PcSensors(
        makers=[maker(library)],
        find_adapters=lambda: list(adapters),
        is_card_asleep=sleeping,
        visible_devices=visible_devices,
    )


def test_cuda_counts_by_slot_and_nvml_by_its_own_order():
    inventory = sensors(FakeNvml(GT_1030, RTX_3060)).inventory()
    assert [(c.short_name, c.driver_index, c.torch_index) for c in inventory.cards] == [
        ("GT 1030", 0, 1),
        ("RTX 3060", 1, 0),
    ]


def test_without_a_driver_the_card_on_the_bus_is_there_with_the_reason():
    inventory = sensors(FakeNvml(init=NVMLError(12)), GT_1030_SLOT, RADEON).inventory()
    (card,) = inventory.cards
    assert card.name == "NVIDIA GeForce GT 1030"
    assert "No NVIDIA driver" in card.unreadable
    assert card.address is None
    assert inventory.driver.error_code == "not_installed"
    assert inventory.other_gpus == ("AMD Radeon RX 6600",)


def test_a_sleeping_card_is_not_woken_and_the_driver_not_opened():
    library = FakeNvml(GT_1030)
    source = sensors(library, asleep(GT_1030_SLOT), sleeping=lambda _bus_id: True)
    (card,) = source.inventory().cards
    (reading,) = source.reading().cards
    assert card.unreadable == ASLEEP
    assert card.address == "cuda:0"
    assert reading.uuid == card.identity == "00000000:01:00.0"
    assert reading.error == ASLEEP
    assert library.open_sessions == 0
    assert library.asked == []
    assert not source.is_outdated


def test_beside_a_sleeping_card_only_the_awake_one_is_opened():
    library = FakeNvml(GT_1030, RTX_3060)
    other = DisplayAdapter(
        vendor_id=0x10DE, device_id=0x2504, name="NVIDIA RTX 3060", pci_bus_id="00000000:00:10.0"
    )
    inventory = sensors(library, asleep(GT_1030_SLOT), other).inventory()
    assert [(c.name, c.unreadable) for c in inventory.cards] == [
        ("NVIDIA GeForce RTX 3060", None),
        ("NVIDIA GeForce GT 1030", ASLEEP),
    ]
    assert [card.torch_index for card in inventory.cards] == [0, 1]


def test_a_card_lost_between_two_readings_is_an_error_and_the_other_goes_on():
    library = FakeNvml(GT_1030, RTX_3060)
    source = sensors(library)
    source.inventory()
    library.cards[0] = dict.fromkeys([*GT_1030], NVMLError(15))
    lost, other = source.reading().cards
    assert "lost" in lost.error
    assert other.error is None
    assert other.telemetry.temperature_c == 26


def test_a_card_that_the_driver_leaves_out_is_listed_with_the_reason():
    inventory = sensors(FakeNvml(), GT_1030_SLOT).inventory()
    (card,) = inventory.cards
    assert "does not list this card" in card.unreadable
    assert card.address is None


def test_a_card_that_falls_asleep_stays_the_same_card():
    library = FakeNvml(GT_1030)
    adapters, is_asleep = [GT_1030_SLOT], [False]
    source = PcSensors(
        makers=[maker(library)],
        find_adapters=lambda: list(adapters),
        is_card_asleep=lambda _slot: is_asleep[0],
    )
    (awake,) = source.inventory().cards
    adapters[:], is_asleep[:] = [asleep(GT_1030_SLOT)], [True]
    (sleeping,) = source.inventory().cards
    assert sleeping.is_asleep
    assert (sleeping.identity, sleeping.memory_total_bytes) == (
        awake.identity,
        awake.memory_total_bytes,
    )
    assert sleeping.telemetry.temperature_c is None
    assert library.open_sessions == 0


class Clock:
    """Goes on by hand."""

    now_s = 100.0

    def __call__(self):
        return self.now_s


def changing(library, slots, clock, changes=None, **options):
    return PcSensors(
        makers=[maker(library, **(changes or {}))], find_adapters=lambda: list(slots),
        is_card_asleep=lambda _bus_id: False, visible_devices=None, now_s=clock, **options,
    )  # fmt: skip


@pytest.mark.parametrize("is_on_the_bus", [True, False])
def test_a_card_that_appears_is_in_the_next_inventory(is_on_the_bus):
    """Windows tells no slots, and a card may be on the bus before its driver knows it."""
    library, slots, clock = FakeNvml(GT_1030), [GT_1030_SLOT], Clock()
    source = changing(library, slots, clock)
    source.inventory()
    library.cards.append(RTX_3060)
    if is_on_the_bus:
        slots.append(msgspec.structs.replace(GT_1030_SLOT, pci_bus_id="00000000:00:10.0"))
    assert not source.is_outdated  # nothing looks at the bus at every reading
    clock.now_s += 3
    assert source.is_outdated
    names = [card.name for card in source.inventory().cards]
    assert names == ["NVIDIA GeForce GT 1030", "NVIDIA GeForce RTX 3060"]
    assert len(source.reading().cards) == 2
    clock.now_s += 3
    assert not source.is_outdated


def test_a_driver_that_is_replaced_on_the_disk_is_reported():
    clock, replaced = Clock(), []
    source = changing(
        FakeNvml(GT_1030), [GT_1030_SLOT], clock, {"is_replaced": lambda: bool(replaced)}
    )
    assert not source.inventory().driver.was_updated
    replaced.append("yes")
    clock.now_s += 3
    assert source.is_outdated
    inventory = source.inventory()
    assert inventory.driver.was_updated
    assert inventory.cards[0].telemetry.temperature_c == 26  # what runs goes on
    clock.now_s += 3
    assert not source.is_outdated


@pytest.fixture
def hanging():
    """A call that returns only when the test is over."""
    over = threading.Event()

    def hang(*_):
        over.wait(2 * PATIENCE_S)
        raise NVMLError(999)

    yield hang
    over.set()


class OneIsLate(Watchdog):
    """Waits long for every call but those about one subject."""

    late = "the driver"

    def call(self, subject, function, timeout_s):
        return super().call(subject, function, 0.2 if subject == self.late else timeout_s)


@pytest.fixture
def one_is_late(monkeypatch):
    monkeypatch.setattr(module, "Watchdog", OneIsLate)
    monkeypatch.setattr(OneIsLate, "late", module._DRIVER)
    return OneIsLate


def with_driver(library):
    return PcSensors(
        makers=[maker(library)], find_adapters=lambda: [GT_1030_SLOT],
        visible_devices=None, start_patience_s=PATIENCE_S, call_patience_s=PATIENCE_S,
    )  # fmt: skip


@pytest.mark.usefixtures("one_is_late")
def test_a_driver_that_never_starts_leaves_the_cpu_and_the_card_on_the_bus(hanging):
    library = FakeNvml(GT_1030)
    library.nvmlInit = hanging
    source = with_driver(library)
    inventory = source.inventory()
    assert inventory.driver.is_silent
    (card,) = inventory.cards
    assert card.unreadable_code == "silent"
    reading = source.reading()
    assert reading.cpu.memory_used_bytes > 0
    assert [result.error_code for result in reading.cards] == ["silent"]
    assert source.has_left_behind
    assert not source.is_outdated


def test_a_driver_that_answers_at_last_outdates_the_inventory(one_is_late):
    library = FakeNvml(GT_1030)
    start, go = library.nvmlInit, threading.Event()

    def slow():
        go.wait(2 * PATIENCE_S)
        return start()

    library.nvmlInit = slow
    source = with_driver(library)
    assert source.inventory().driver.is_silent
    one_is_late.late = "none"
    go.set()
    until(lambda: source.is_outdated)
    (card,) = source.inventory().cards
    assert card.unreadable is None


def test_one_card_that_hangs_leaves_the_others(hanging, one_is_late):
    library = FakeNvml(GT_1030, RTX_3060)
    one_is_late.late = GT_1030_UUID
    source = with_driver(library)
    source.inventory()
    ask = library.nvmlDeviceGetTemperature

    def temperature(handle, *arguments):
        return hanging() if handle == 0 else ask(handle, *arguments)

    library.nvmlDeviceGetTemperature = temperature
    for _ in range(2):
        silent, other = source.reading().cards
        assert silent.error_code == "silent"
        assert other.telemetry.temperature_c == 26
    assert source.has_left_behind


def test_another_card_is_asked_for_in_a_fresh_session():
    """A session of the driver knows the cards that were there when it began."""
    library, slots, clock, begun = FakeNvml(GT_1030), [GT_1030_SLOT], Clock(), []
    start = library.nvmlInit
    library.nvmlInit = lambda: (begun.append(len(library.cards)), start())
    source = changing(library, slots, clock)
    source.inventory()
    library.cards.append(RTX_3060)
    clock.now_s += 3
    assert source.is_outdated
    source.inventory()
    assert begun == [1, 2]
    assert library.open_sessions == 1


def test_cards_with_one_uuid_are_told_apart_by_their_slots():
    twin = RTX_3060 | {"UUID": GT_1030_UUID, ("Temperature", 0): 61}
    source = sensors(FakeNvml(GT_1030, twin))
    first, second = source.inventory().cards
    assert (first.uuid, second.uuid) == (None, None)
    assert [(card.identity, card.name) for card in (first, second)] == [
        ("00000000:01:00.0", "NVIDIA GeForce GT 1030"),
        ("00000000:00:10.0", "NVIDIA GeForce RTX 3060"),
    ]
    assert (first.address, second.address) == ("cuda:1", "cuda:0")
    readings = {card.uuid: card.telemetry.temperature_c for card in source.reading().cards}
    assert readings == {first.identity: 26, second.identity: 61}
