"""The cards that Linux itself reads, whoever made them and whatever drives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core import operating_system
from gpu_studio.core.devices.devices import Device, Driver
from gpu_studio.core.devices.gpu_chips import gfx_target, gpu_chip
from gpu_studio.core.devices.signs import lender_of
from gpu_studio.core.telemetry import SENSORS
from gpu_studio.hardware.card_reader import (
    NOT_THERE,
    CardReader,
    CardUnreadableError,
    kind_of,
    read_from,
)
from gpu_studio.hardware.linux.adapters import find_adapters
from gpu_studio.hardware.linux.driver_sensors import CardPlace, Hwmon, sensors_of_driver
from gpu_studio.hardware.linux.fdinfo import CardClients, Descriptors
from gpu_studio.hardware.linux.sys_tree import sys_tree
from gpu_studio.hardware.pci import normal_bus_id

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.hardware.card_reader import Sources
    from gpu_studio.hardware.linux.driver_sensors import Memory
    from gpu_studio.hardware.linux.sys_tree import SysTree
    from gpu_studio.hardware.pci import DisplayAdapter

_LENT = (
    "This card is lent to a virtual machine: the driver {driver} holds it, and it has no sensors "
    "here."
)
_NO_DRIVER = "Linux has no driver loaded for this card, so nothing reads its sensors."


class LinuxReader(CardReader):
    """See `card_reader.CardReader`. It opens no driver, and so keeps no card awake."""

    def __init__(self, tree: SysTree | None = None) -> None:
        self._tree = tree or sys_tree()
        self._cards: dict[str, LinuxCard] = {}
        self._descriptors = Descriptors()

    def driver(self) -> Driver:
        return Driver(version=None if self._tree.is_copy else operating_system.release())

    def card(self, which: int | str) -> LinuxCard:
        adapters = find_adapters(self._tree)
        here = next((one for one in adapters if one.slot == which), None)
        if here is not None:
            return self._open(here)
        for adapter in adapters:
            driver = adapter.kernel_driver
            if adapter.is_asleep or driver is None or lender_of(driver):
                continue
            card = self._open(adapter)
            if card.describe().uuid == which:
                return card
        raise CardUnreadableError(NOT_THERE, "lost")

    def close(self) -> None:
        self._cards.clear()

    def _open(self, adapter: DisplayAdapter) -> LinuxCard:
        """Return the same card for the same slot: its power and its load need two readings."""
        driver = adapter.kernel_driver
        if lender_of(driver):
            raise CardUnreadableError(_LENT.format(driver=driver), "not_served")
        if driver is None and not adapter.card:
            raise CardUnreadableError(_NO_DRIVER, "no_driver")
        if adapter.slot not in self._cards:
            self._cards[adapter.slot] = self._card(adapter)
        return self._cards[adapter.slot]

    def _card(self, adapter: DisplayAdapter) -> LinuxCard:
        card = LinuxCard(self._tree, adapter)
        if self._tree.is_copy:
            return card
        slot = adapter.folder.rpartition("/")[2]
        clients = CardClients(slot, bool(card.is_integrated), self._descriptors)
        return LinuxCard(self._tree, adapter, clients, operating_system.release())


_GONE = "The card is no longer there: it was removed, or it dropped off the bus."
_UNIQUE_ID = re.compile(r"[0-9a-f]{8,16}")
# amdgpu's gpu_metrics begin with a size, then the format: 1 is a card, 2 and 3 are integrated.
_INTEGRATED_FORMATS = (2, 3)
# Where Intel's processors have their own graphics, and where no card can be.
_INTEGRATED_SLOT = "00000000:00:02.0"
# PCI Express Base Specification: transfers per second of a lane, by generation.
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_SPEED = re.compile(r"(\d+(?:\.\d)?) GT/s")
_MOST_LANES = 32
_BRIDGE_CLASS = 0x0604
_ROOT_BUS = "00000000:00:"
# AMD and Intel: a switch is between the slot and the chip, whose own link is an inner one.
_AMD, _INTEL = 0x1002, 0x8086
_WITH_SWITCH = (_AMD, _INTEL)


class PcieLink(NamedTuple):
    """A link; None for what is not reported."""

    generation: int | None = None
    width: int | None = None


def link_of(tree: SysTree, device: str, which: str) -> PcieLink:
    """Return the link of a card to its slot.

    Args:
        tree: the tree that has it.
        device: the folder of the card's device.
        which: ``current`` or ``max``.
    """
    folder = _slot_side(tree, device)
    found = _SPEED.match(tree.text(f"{folder}/{which}_link_speed") or "")
    generation = _GENERATIONS.get(float(found[1])) if found else None
    width = tree.number(f"{folder}/{which}_link_width", 1, _MOST_LANES)
    link = PcieLink(generation, width)
    if not generation or not width or (folder == device and _is_placeholder(tree, device, link)):
        return PcieLink()
    return link


def _is_placeholder(tree: SysTree, device: str, link: PcieLink) -> bool:
    """Return whether it is what every card of Intel's says of the link inside it."""
    return tree.hexadecimal(f"{device}/vendor") == _INTEL and link == PcieLink(1, 1)


def _slot_side(tree: SysTree, device: str) -> str:
    """Return the folder of the outermost bridge on the card itself; the card's if it has none."""
    vendor, folder = tree.hexadecimal(f"{device}/vendor"), device
    while vendor in _WITH_SWITCH:
        above = folder.rpartition("/")[0]
        slot = normal_bus_id(above.rpartition("/")[2])
        is_own = tree.hexadecimal(f"{above}/vendor") == vendor if slot else False
        is_bridge = (tree.hexadecimal(f"{above}/class") or 0) >> 8 == _BRIDGE_CLASS
        if slot is None or slot.startswith(_ROOT_BUS) or not is_own or not is_bridge:
            break
        folder = above
    return folder


class LinuxCard:
    """See `card_reader.OpenCard`.

    Args:
        tree: the tree that describes it.
        adapter: the card in the tree.
        clients: the programs on it; None if nothing says them.
        system_version: the version of a driver that is part of Linux; None in another PC's tree.
    """

    def __init__(
        self,
        tree: SysTree,
        adapter: DisplayAdapter,
        clients: CardClients | None = None,
        system_version: str | None = None,
    ) -> None:
        self._tree, self._adapter, self._clients = tree, adapter, clients
        self._device = adapter.folder
        self._place = CardPlace(tree, adapter.folder, adapter.card)
        self._sensors = sensors_of_driver(adapter.kernel_driver)
        self._hwmon = Hwmon(tree, self._device, adapter.kernel_driver)
        self._system_version = system_version
        self._node: KfdNode | None = None

    def describe(self) -> Device:
        self._require()
        adapter, maker, is_integrated = self._adapter, self._adapter.maker, self.is_integrated
        memory, clocks = self._sensors.memory(self._place), self._sensors.clocks(self._place)
        best = link_of(self._tree, self._device, "max")
        chip = gpu_chip(maker, adapter.device_id)
        unique_id = (self._text("unique_id") or "").lower()
        return Device(
            kind=kind_of(maker),
            maker=maker,
            name=adapter.name,
            # As rocminfo writes it.
            uuid=f"GPU-{unique_id}" if _UNIQUE_ID.fullmatch(unique_id) else None,
            pci_bus_id=adapter.pci_bus_id,
            pci_device_id=adapter.device_id or None,
            memory_total_bytes=_total(memory, is_integrated),
            dedicated_memory_bytes=memory.own_total if is_integrated else None,
            shared_memory_bytes=memory.shared_total if is_integrated else None,
            is_integrated=is_integrated,
            architecture=self._target() or (chip.target if chip else None),
            chip=chip.name if chip else None,
            bar1_bytes=None if is_integrated else self._largest_bar(),
            sm_clock_max_mhz=clocks.core_max_mhz,
            memory_clock_max_mhz=clocks.memory_max_mhz,
            pcie_generation_max=best.generation,
            pcie_width_max=best.width,
            vbios=self._text("vbios_version"),
            display_active=self._has_display(),
            kernel_driver=adapter.kernel_driver,
            driver_version=self._driver_version(),
        )

    def telemetry(self, fields: Collection[str] = SENSORS) -> Telemetry:
        self._require()
        return read_from(self._sources, fields)

    def processes(self, *, with_load: bool = False) -> tuple[GpuProcess, ...]:
        if self._clients is None:
            return ()
        self._clients.read()
        if self._node is None and self._adapter.kernel_driver == "amdgpu":
            self._node = kfd_node(self._tree, self._adapter.pci_bus_id)
        return self._clients.processes(computing_on(self._tree, self._node))

    def _require(self) -> None:
        if not self._tree.is_folder(self._device):
            raise CardUnreadableError(_GONE, "lost")

    @property
    def _sources(self) -> Sources:
        sensors, hwmon, place = self._sensors, self._hwmon, self._place
        return {
            "power_w": lambda: hwmon.watts(sensors.power),
            "power_limit_w": lambda: hwmon.limit_watts(sensors.power),
            "temperature_c": lambda: hwmon.celsius(sensors.temperature),
            "hotspot_c": lambda: hwmon.celsius(sensors.hotspot),
            "memory_temperature_c": self._memory_celsius,
            "fan_percent": hwmon.fan_percent,
            "fan_rpm": hwmon.fan_rpm,
            "utilization_percent": self._load,
            "memory_utilization_percent": lambda: self._percent(sensors.memory_load),
            ("memory_used_bytes", "memory_free_bytes"): self._memory_use,
            ("sm_clock_mhz", "memory_clock_mhz"): self._clocks,
            ("pcie_generation", "pcie_width"): lambda: link_of(self._tree, self._device, "current"),
            "clock_event_reasons": lambda: sensors.reasons(place),
        }

    @property
    def is_integrated(self) -> bool | None:
        """Whether it is a part of the processor and uses the PC's memory; None if unknown."""
        adapter = self._adapter
        chip = gpu_chip(adapter.maker, adapter.device_id)
        if chip is not None:
            return chip.is_integrated
        if adapter.maker == "Intel":
            return adapter.pci_bus_id == _INTEGRATED_SLOT
        if adapter.kernel_driver != "amdgpu":
            return None
        metrics = self._tree.data(f"{self._device}/gpu_metrics") or b""
        if len(metrics) > 2 and metrics[2] in (1, *_INTEGRATED_FORMATS):
            return metrics[2] in _INTEGRATED_FORMATS
        # amdgpu has the voltage of the northbridge for integrated graphics alone: amdgpu_pm.c.
        return self._hwmon.has_label("in", "vddnb")

    def _text(self, name: str) -> str | None:
        return self._tree.text(f"{self._device}/{name}")

    def _percent(self, name: str) -> float | None:
        value = self._tree.number(f"{self._device}/{name}", 0, 100) if name else None
        return None if value is None else float(value)

    def _load(self) -> float | None:
        load = self._percent(self._sensors.load)
        if load is None and self._clients is not None:
            self._clients.read()
            return self._clients.percent
        return load

    def _clocks(self) -> tuple[float | None, float | None]:
        files, hwmon = self._sensors.clocks(self._place), self._hwmon
        core_mhz = hwmon.megahertz(self._sensors.core_clock)
        memory_mhz = hwmon.megahertz(self._sensors.memory_clock)
        return (
            files.core_mhz if core_mhz is None else core_mhz,
            files.memory_mhz if memory_mhz is None else memory_mhz,
        )

    def _memory_use(self) -> tuple[int | None, int | None]:
        """Return the used and the free bytes."""
        memory = self._sensors.memory(self._place)
        total, used = _total(memory, self.is_integrated), self._used(memory)
        return used, None if total is None or used is None else total - used

    def _memory_celsius(self) -> float | None:
        degrees = self._hwmon.celsius(self._sensors.memory_temperature)
        if degrees is None and self._sensors.memory_channels:
            return self._hwmon.hottest_celsius(self._sensors.memory_channels)
        return degrees

    def _used(self, memory: Memory) -> int | None:
        used, total = memory.own_used, memory.own_total
        if self.is_integrated and used is not None and total is not None:
            used += memory.shared_used or 0
            total += memory.shared_total or 0
        if used is None and self._clients is not None:
            self._clients.read()
            return self._clients.memory_bytes
        return None if used is None or (total is not None and used > total) else used

    def _target(self) -> str | None:
        """Return the architecture as AMD's compute driver has it for the card in this slot."""
        node = kfd_node(self._tree, self._adapter.pci_bus_id)
        return gfx_target(node.target) if node and node.target else None

    def _largest_bar(self) -> int | None:
        """Return the size of the window through which the processor reaches the card's memory.

        A line of ``resource`` per region: its first and last address and its flags.
        """
        sizes = []
        for line in self._tree.lines(f"{self._device}/resource")[:6]:
            try:
                first, last, _flags = (int(part, 16) for part in line.split())
            except ValueError:
                continue
            if last > first:
                sizes.append(last - first + 1)
        largest = max(sizes, default=0)
        return largest or self._tree.number(f"{self._device}/mem_info_vis_vram_total", 1, 1 << 50)

    def _has_display(self) -> bool | None:
        card = self._adapter.card
        name = card.rpartition("/")[2]
        outputs = (
            [one for one in self._tree.names(card) if one.startswith(f"{name}-")] if card else []
        )
        states = [self._tree.text(f"{card}/{one}/status") for one in outputs]
        if not any(states):
            return None
        return "connected" in states

    def _driver_version(self) -> str | None:
        driver = self._adapter.kernel_driver
        if driver is None:
            return None
        module = driver.replace("-", "_")
        return self._tree.text(f"module/{module}/version") or self._system_version


def _total(memory: Memory, is_integrated: bool | None) -> int | None:
    if memory.own_total is None:
        return None
    return memory.own_total + (memory.shared_total or 0 if is_integrated else 0)


_FOLDERS = ("class/kfd/kfd", "devices/virtual/kfd/kfd", "kfd", "class/kfd")
_NODES = "topology/nodes"
_MOST_BYTES = 1 << 50


class KfdNode(NamedTuple):
    """A card as amdkfd lists it.

    Attributes:
        folder: amdkfd's own.
        gpu_id: its name of the card; empty if it has none.
        target: the version of the architecture; None for a processor.
    """

    folder: str
    gpu_id: str
    target: int | None


def kfd_node(tree: SysTree, pci_bus_id: str | None) -> KfdNode | None:
    """Return the card in a slot; None if amdkfd does not have it."""
    location = _location(pci_bus_id)
    for folder in _FOLDERS:
        names = tree.names(f"{folder}/{_NODES}")
        for name in names:
            node = f"{folder}/{_NODES}/{name}"
            fields = dict(
                line.split(None, 1)
                for line in tree.lines(f"{node}/properties")
                if len(line.split()) == 2
            )
            target = _whole(fields.get("gfx_target_version"))
            here = (_whole(fields.get("domain")) or 0, _whole(fields.get("location_id")))
            if target and here == location:
                return KfdNode(folder, tree.text(f"{node}/gpu_id") or "", target)
        if names:
            return None
    return None


def computing_on(tree: SysTree, node: KfdNode | None) -> dict[int, int | None]:
    """Return the processes that compute on a card, with their bytes of its memory."""
    if node is None or not node.gpu_id:
        return {}
    held = {
        int(name): tree.number(f"{node.folder}/proc/{name}/vram_{node.gpu_id}", 0, _MOST_BYTES)
        for name in tree.names(f"{node.folder}/proc")
        if name.isdecimal()
    }
    return {pid: size for pid, size in held.items() if size}  # each is listed for every card


def _location(pci_bus_id: str | None) -> tuple[int, int | None]:
    """Return the domain and the number by which amdkfd calls a slot: its bus, device, function."""
    if pci_bus_id is None:
        return 0, None
    domain, bus, rest = pci_bus_id.split(":")
    slot, function = rest.split(".")
    return int(domain, 16), int(bus, 16) << 8 | int(slot, 16) << 3 | int(function, 16)


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None
