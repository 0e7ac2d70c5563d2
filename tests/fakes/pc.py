"""A PC's devices, and sensors that say what a test tells them to."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gpu_studio.core.devices.devices import (
    CardReading,
    Device,
    Driver,
    GpuProcess,
    Inventory,
    Reading,
    SensorEvent,
)
from gpu_studio.core.telemetry import ClockReason, Telemetry


class SteadySensors:
    """Satisfies `model.sensors.SensorSource`: an inventory, some readings, then silence.

    Without an inventory, a slow PC: it comes when the test sends it.
    """

    trouble = None

    def __init__(self, inventory: Inventory | None, readings: Iterable[Reading] = ()) -> None:
        self.is_paused: bool | None = None  # not asked yet
        self.is_closed = False
        self.reads_programs: bool | None = None
        self._events: list[SensorEvent] = [*([inventory] if inventory else []), *readings]
        self._more = threading.Condition()

    def readings(self) -> Iterator[SensorEvent]:
        taken = 0
        while True:
            with self._more:
                self._more.wait_for(lambda: self.is_closed or taken < len(self._events))  # noqa: B023
                if self.is_closed:
                    return
                event = self._events[taken]
            taken += 1
            yield event

    def send(self, event: SensorEvent) -> None:
        with self._more:
            self._events.append(event)
            self._more.notify_all()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def read_programs(self, *, wanted: bool) -> None:
        self.reads_programs = wanted

    def close(self) -> None:
        with self._more:
            self.is_closed = True
            self._more.notify_all()


def cpu_device() -> Device:
    return Device(
        kind="cpu", name="AMD Ryzen 7 5700G with Radeon Graphics", cores=8, threads=16,
        memory_total_bytes=32 << 30, clock_max_mhz=4672.0,
    )  # fmt: skip


def gt_1030_card(**changes: Any) -> Device:
    plain = Device(
        kind="cuda", name="NVIDIA GeForce GT 1030",
        uuid="GPU-1b2f5a80-8d65-4b4f-9f7e-0a6c1c1d1030", memory_total_bytes=2 << 30,
        compute_capability="6.1", architecture="Pascal", driver_index=0,
        pci_bus_id="00000000:01:00.0", multiprocessors=3, cuda_cores=384,
        memory_bus_width_bits=64, sm_clock_max_mhz=1911.0, memory_clock_max_mhz=3004.0,
        pcie_generation_max=3, pcie_width_max=4, vbios="86.08.3B.00.5A", display_active=True,
        compute_mode="default",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def rtx_3060_card(**changes: Any) -> Device:
    plain = Device(
        kind="cuda", name="NVIDIA GeForce RTX 3060",
        uuid="GPU-77aa0d1c-0000-4c55-b9a1-33060306ffff", memory_total_bytes=12 << 30,
        compute_capability="8.6", architecture="Ampere", driver_index=1,
        pci_bus_id="00000000:06:00.0", multiprocessors=28, cuda_cores=3584,
        memory_bus_width_bits=192, sm_clock_max_mhz=2100.0, memory_clock_max_mhz=7501.0,
        pcie_generation_max=4, pcie_width_max=16, display_active=False, compute_mode="default",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def cpu_only() -> Inventory:
    return Inventory(
        devices=(cpu_device(),),
        driver=Driver(error="No NVIDIA driver is installed.", error_code="not_installed"),
    )


def gt_1030() -> Inventory:
    """A PC with one small card that drives the monitor."""
    return Inventory(
        devices=(cpu_device(), gt_1030_card()),
        driver=Driver(version="570.86.16", cuda_version="12.8", nvml_version="12.570.86.16"),
    )


def two_cards() -> Inventory:
    """A PC with two cards, each in its place on the bus."""
    return Inventory(
        devices=(cpu_device(), gt_1030_card(), rtx_3060_card()),
        driver=Driver(version="580.95.05", cuda_version="13.0", nvml_version="13.580.95.05"),
    )


def long_names() -> Inventory:
    """A PC whose devices have some of the longest names that drivers and systems report."""
    usual = two_cards()
    names = (
        "Intel(R) Core(TM) i7-10750H CPU @ 2.60GHz",
        "NVIDIA GeForce GTX 1650 with Max-Q Design", "NVIDIA GeForce RTX 4060 Laptop GPU",
    )  # fmt: skip
    devices = zip(usual.devices, names, strict=True)
    named = tuple(msgspec.structs.replace(device, name=name) for device, name in devices)
    return msgspec.structs.replace(usual, devices=named)


def reading(inventory: Inventory, taken_at_s: float = 0.0, **changes: Any) -> Reading:
    """Return a reading of all devices of an inventory; ``changes`` are of each card's telemetry."""
    card_telemetry = Telemetry(
        power_w=9.5, power_limit_w=30.0, temperature_c=41.0, hotspot_c=52.0, fan_percent=35.0,
        utilization_percent=4.0, memory_utilization_percent=1.0,
        memory_used_bytes=256 << 20, memory_free_bytes=1700 << 20, pstate=8,
        sm_clock_mhz=227.0, memory_clock_mhz=405.0, pcie_generation=1, pcie_width=4,
        clock_event_reasons=ClockReason(1),
    )  # fmt: skip
    card_telemetry = msgspec.structs.replace(card_telemetry, **changes)
    process = GpuProcess(
        pid=1234, name="/usr/lib/xorg/Xorg", kind="graphics", memory_bytes=90 << 20
    )
    return Reading(
        taken_at_s=taken_at_s,
        cpu=Telemetry(utilization_percent=12.0, memory_used_bytes=8 << 30, sm_clock_mhz=3800.0),
        cards=tuple(
            CardReading(uuid=card.identity, telemetry=card_telemetry, processes=(process,))
            for card in inventory.cards
        ),
    )
