"""The tanks of the engines' readings, combined with the driver's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.tank import Tank, card_users, tank_of_card, tank_of_ram, tank_of_sensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.memory_messages import MemoryRead
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.memory.engine_memory import EngineMemory
    from gpu_studio.model.memory.oom_experiment import LabResult
    from gpu_studio.model.sensors import Sensors

_STEADY_S = 0.3


class Tanks:
    """Makes tanks, and remembers the memory of each engine's CUDA context.

    The driver reports a process every now and then, the engine sixty times a second. Their
    difference is the context only if both are from the same moment. So it is learned while the
    memory is constant, and kept while it changes.

    Args:
        sensors: NVML's readings.
        engines: this program's engines, by their names on the screen.
    """

    def __init__(self, sensors: Sensors, engines: Mapping[str, EngineMemory]) -> None:
        self._sensors, self._engines = sensors, engines
        self._context_bytes: dict[int, int] = {}

    def learn(self, identity: str, device: Device | None, memory: EngineMemory) -> None:
        """Use a new reading of the sensors.

        Args:
            identity: the device's own in the window.
            device: its facts; None if the sensors do not know it.
            memory: the engine whose allocator is shown.
        """
        read, pid = memory.latest(identity), memory.pid
        if device is None or read is None or read.reserved_bytes is None or pid is None:
            return
        users = card_users(self._sensors.processes(device), pid, {})
        if users.engine_bytes is not None and memory.is_steady(identity, _STEADY_S):
            self._context_bytes[pid] = max(users.engine_bytes - read.reserved_bytes, 0)

    def of(self, read: MemoryRead, device: Device | None, pid: int | None) -> Tank | None:
        """Return the tank of a reading; None without a CUDA context.

        Args:
            read: an engine's reading.
            device: the card as NVML reports it; None for a simulated card.
            pid: the engine's process.
        """
        if read.process_bytes is not None:
            return tank_of_ram(read)
        if read.modelled or device is None:
            return tank_of_card(read)
        others = {
            memory.pid: name
            for name, memory in self._engines.items()
            if memory.pid is not None and memory.pid != pid
        }
        users = card_users(self._sensors.processes(device), pid, others)
        context_bytes = self._context_bytes.get(pid) if pid is not None else None
        engine_bytes = read.engine_bytes
        if engine_bytes is None and context_bytes is not None:
            engine_bytes = context_bytes + (read.reserved_bytes or 0)
        users = msgspec.structs.replace(users, engine_bytes=engine_bytes)
        return tank_of_card(read, device.memory_total_bytes, users)

    def reached(self, result: LabResult) -> Tank | None:
        """Return the tank of the moment that a result is about; None without a reading."""
        if result.reached is None:
            return None
        inventory = self._sensors.inventory
        device = inventory.find(result.request.device) if inventory else None
        return self.of(result.reached, device, result.pid)

    def without_engine(self, device: Device | None) -> Tank | None:
        """Return a device's tank from the sensors only; None before their first reading."""
        telemetry = self._sensors.latest(device) if device else None
        if device is None or telemetry is None:
            return None
        return tank_of_sensors(telemetry, device.memory_total_bytes)

    def sizes_bytes(
        self, chosen: DeviceRow, device: Device | None, read: MemoryRead | None
    ) -> tuple[int, int] | None:
        """Return a card's total memory, and the memory that is free for a separate engine.

        Args:
            chosen: the card.
            device: the card as NVML reports it; None for a simulated card.
            read: the last reading of the program's own engine.
        """
        if chosen.is_modelled and chosen.address is not None:
            card = card_at(chosen.address)
            return card.total_bytes, card.free_bytes
        if read is not None and read.total_bytes is not None and read.free_bytes is not None:
            return read.total_bytes, read.free_bytes
        tank = self.without_engine(device)
        if tank is None:
            return None
        free_bytes = next(part.size_bytes for part in tank.parts if part.key == "free")
        return tank.total_bytes, free_bytes
