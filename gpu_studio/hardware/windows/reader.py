"""The cards that Windows itself reads, whoever made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.devices.devices import Device, Driver
from gpu_studio.core.devices.gpu_chips import gpu_chip
from gpu_studio.core.telemetry import SENSORS, Telemetry
from gpu_studio.core.texts import plain_text
from gpu_studio.hardware.card_reader import (
    NOT_THERE,
    CardReader,
    CardUnreadableError,
    DriverUnavailableError,
    kind_of,
    processes_of,
)
from gpu_studio.hardware.pci import DisplayAdapter, adapter_name, vendor_name
from gpu_studio.hardware.windows.counters import COUNTERS, GraphicsCounters
from gpu_studio.hardware.windows.d3dkmt import D3dkmtError, open_adapters

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.hardware.card_reader import AdapterUse
    from gpu_studio.hardware.windows.d3dkmt import KernelAdapter

_HOTTEST_TENTHS = 1500  # what lies above is no temperature of a card
_FASTEST_FAN_RPM = 30_000


def kernel_adapters(open_all: Callable[[], Sequence[KernelAdapter]] = open_adapters) -> list[
    DisplayAdapter
]:  # fmt: skip
    """Return the cards on the bus that Windows' graphics kernel lists; none if it cannot be asked.

    Args:
        open_all: opens the kernel's adapters.
    """
    try:
        opened = open_all()
    except D3dkmtError:
        return []
    found = [_adapter_of(one) for one in opened]
    for one in opened:
        one.close()
    return [one for one in found if one is not None]


def _adapter_of(one: KernelAdapter) -> DisplayAdapter | None:
    ids, slot = one.ids, one.slot
    if ids is None or slot is None or one.is_software:
        return None
    vendor_id, device_id, revision = ids
    return DisplayAdapter(
        vendor_id=vendor_id,
        device_id=device_id,
        revision=revision,
        name=adapter_name(vendor_id, device_id, plain_text(one.name)),
        pci_bus_id=slot,
    )


class WindowsCard:
    """See `card_reader.OpenCard`.

    Args:
        adapter: as the graphics kernel has it.
        found: the card on the bus.
        counters: load and memory of all adapters.
    """

    def __init__(
        self, adapter: KernelAdapter, found: DisplayAdapter, counters: GraphicsCounters
    ) -> None:
        self._adapter, self._found, self._counters = adapter, found, counters
        limits = adapter.limits()
        self._has_fan = limits is not None and limits.fan_max_rpm > 0
        chip = gpu_chip(found.maker, found.device_id)
        self._chip, self._is_integrated = chip, None if chip is None else chip.is_integrated

    def describe(self) -> Device:
        found, chip, memory = self._found, self._chip, self._adapter.memory()
        own, shared = (memory.dedicated or None, memory.shared or None) if memory else (None, None)
        both = (own or 0) + (shared or 0) or None
        now = self._adapter.performance()
        return Device(
            kind=kind_of(vendor_name(found.vendor_id)),
            maker=found.maker,
            name=found.name,
            pci_bus_id=found.pci_bus_id,
            pci_device_id=found.device_id,
            memory_total_bytes=both if self._is_integrated else own,
            dedicated_memory_bytes=own if self._is_integrated else None,
            shared_memory_bytes=shared if self._is_integrated else None,
            is_integrated=self._is_integrated,
            architecture=chip.target if chip else None,
            chip=chip.name if chip else None,
            memory_clock_max_mhz=now.memory_max_hz / 1e6 if now and now.memory_max_hz else None,
            vbios=plain_text(self._adapter.bios) or None,
        )

    def telemetry(self, fields: Collection[str] = SENSORS) -> Telemetry:
        """Return all that Windows says: the power only as a part of a limit that it does not say.

        Args:
            fields: is not looked at, as two calls answer everything.
        """
        now, use, memory = self._adapter.performance(), self._use(), self._adapter.memory()
        used, total = use.own_bytes, memory.dedicated if memory else None
        if self._is_integrated and used is not None:
            used += use.shared_bytes or 0
            total = None if memory is None else memory.dedicated + memory.shared
        tenths = now.temperature if now else 0
        rpm = now.fan_rpm if now and self._has_fan else None
        return Telemetry(
            temperature_c=tenths / 10 if 0 < tenths <= _HOTTEST_TENTHS else None,
            fan_rpm=float(rpm) if rpm is not None and rpm <= _FASTEST_FAN_RPM else None,
            utilization_percent=use.percent,
            memory_used_bytes=used,
            memory_free_bytes=None if not total or used is None else max(total - used, 0),
            memory_clock_mhz=now.memory_hz / 1e6 if now and now.memory_hz else None,
        )

    def processes(self, *, with_load: bool = False) -> tuple[GpuProcess, ...]:
        use, memory = self._use(), self._adapter.memory()
        sizes = use.processes or {}
        shared: dict[int, int] = {}
        if self._is_integrated:  # its memory is the PC's
            held: dict[int, int | None] = {pid: sum(both) for pid, both in sizes.items()}
        else:
            held = use.held_bytes(memory.dedicated if memory else None, use.own_bytes)
            shared = {pid: size for pid, (_, size) in sizes.items()}
        return processes_of(held, {pid: use.kind(pid) for pid in held}, use.busy_percent, shared)

    def _use(self) -> AdapterUse:
        return self._counters.use_of(self._adapter.luid)


class WindowsReader(CardReader):
    """See `card_reader.CardReader`.

    Args:
        open_all: opens the kernel's adapters.
        counters: load and memory of all adapters; None is the session that all share.

    Raises:
        DriverUnavailableError: this Windows lists no adapters.
    """

    def __init__(
        self,
        open_all: Callable[[], Sequence[KernelAdapter]] = open_adapters,
        counters: GraphicsCounters | None = None,
    ) -> None:
        try:
            self._opened = list(open_all())
        except D3dkmtError as error:
            raise DriverUnavailableError(Driver(error=str(error))) from error
        self._counters = counters or COUNTERS
        self._cards: dict[str, WindowsCard] = {}
        for one in self._opened:
            found = _adapter_of(one)
            if found is not None:
                self._cards[found.slot] = WindowsCard(one, found, self._counters)

    def driver(self) -> Driver:
        return Driver(version=operating_system.release())

    def card(self, which: int | str) -> WindowsCard:
        card = self._cards.get(str(which))
        if card is None:
            raise CardUnreadableError(NOT_THERE, "lost")
        return card

    def close(self) -> None:
        self._counters.close()
        for one in self._opened:
            one.close()
        self._opened, self._cards = [], {}
