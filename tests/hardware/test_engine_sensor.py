"""What an engine reads for its runs and checks, of the cards of any maker."""

import os
import weakref

import pytest

from gpu_studio.core.devices.devices import Device, Driver, GpuProcess
from gpu_studio.core.telemetry import SENSORS, ClockReason, Telemetry
from gpu_studio.hardware.card_reader import (
    CardReader,
    CardUnreadableError,
    DriverUnavailableError,
    Maker,
    OpenCard,
)
from gpu_studio.hardware.engine_sensor import EngineSensor
from gpu_studio.hardware.nvidia.nvidia import NVIDIA

UUID, SLOT = "FAKE-1", "00000000:05:00.0"
HOT = Telemetry(temperature_c=91.0, clock_event_reasons=ClockReason.HARDWARE_HEAT)
DRIVER = Driver(version="1.0")


class FakeCard:
    def describe(self) -> Device:
        return Device(kind="fake", maker="Fake", name="Fake 9000", uuid=UUID, pci_bus_id=SLOT)

    def telemetry(self, fields=SENSORS) -> Telemetry:
        return HOT

    def processes(self, *, with_load=False) -> tuple[GpuProcess, ...]:
        own = GpuProcess(pid=os.getpid(), memory_bytes=7)
        return own, GpuProcess(pid=1, busy_percent=55.0 if with_load else None)


class FakeReader(CardReader):
    def __init__(self, card: OpenCard) -> None:
        self._card = card

    def driver(self) -> Driver:
        return DRIVER

    def count(self) -> int:
        return 1

    def card(self, which) -> OpenCard:
        if which not in (0, SLOT, UUID):
            raise CardUnreadableError("Not here.")
        return self._card

    def process_name(self, pid) -> str | None:
        return "driver's name"

    def close(self) -> None: ...


def no_nvidia():
    raise DriverUnavailableError(Driver(error="No NVIDIA driver.", error_code="not_installed"))


@pytest.fixture
def makers():
    fake = Maker(
        name="Fake", claims=lambda one: one.vendor_id == 0x1234, kind="fake",
        open=lambda: FakeReader(FakeCard()),
    )  # fmt: skip
    nvidia = Maker(name="NVIDIA", claims=NVIDIA.claims, kind="cuda", open=no_nvidia)
    return [nvidia, fake]


def test_an_engine_reads_it_for_its_runs_and_checks(makers):
    sensor = EngineSensor(makers)
    assert sensor.read(UUID).clock_event_reasons is ClockReason.HARDWARE_HEAT
    assert [one.memory_bytes for one in sensor.processes(UUID)] == [7, None]
    assert sensor.busiest_program(UUID)
    assert sensor.device(UUID).driver_version == "1.0"
    for nobody in ("GPU-of-nobody", "GPU-of-nobody"):  # not remembered: it may come back
        assert sensor.read(nobody) is None
        assert sensor.device(nobody) is None
        assert sensor.processes(nobody) == ()
    assert sensor.device("cpu").threads >= 1


def test_a_card_that_no_reader_knows_keeps_nothing_of_its_callers(makers, monkeypatch):
    """An error that was kept held the frames above it, and so a gigabyte of tensors."""
    # pytest keeps what is logged, with the error.
    monkeypatch.setattr("gpu_studio.hardware.engine_sensor._log.warning", lambda *_: None)

    class Tensors:
        pass

    def ask() -> weakref.ref[Tensors]:
        tensors = Tensors()
        assert EngineSensor(makers).read("GPU-of-nobody") is None
        return weakref.ref(tensors)

    assert ask()() is None
