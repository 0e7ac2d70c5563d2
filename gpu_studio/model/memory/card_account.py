"""Who has a card's memory: the engine's own account and the driver's, brought together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.memory.tank import Tank, card_users, tank_of_card

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.pc.devices import Device
    from gpu_studio.core.protocol import MemoryRead
    from gpu_studio.model.memory.engine_memory import EngineMemory
    from gpu_studio.model.sensors import Sensors

_STEADY_S = 0.3


class CardAccount:
    """Remembers what the CUDA context of each engine takes.

    The driver tells of a process now and then, the engine sixty times a second: their difference
    is the context only where both speak of the same moment. So it is learned while nothing moves,
    and kept while it does.
    """

    def __init__(self, sensors: Sensors) -> None:
        self._sensors = sensors
        self._context_bytes: dict[int, int] = {}

    def learn(self, device: Device | None, memory: EngineMemory) -> None:
        """Take a new reading of the sensors into account."""
        read = memory.latest(device.identity) if device is not None else None
        pid = memory.pid
        if device is None or read is None or read.reserved_bytes is None or pid is None:
            return
        users = card_users(self._sensors.processes(device), pid, {})
        if users.engine_bytes is not None and memory.is_steady(device.identity, _STEADY_S):
            self._context_bytes[pid] = max(users.engine_bytes - read.reserved_bytes, 0)

    def tank(
        self,
        read: MemoryRead,
        device: Device,
        pid: int | None,
        others: Mapping[int, str],
        error_bytes: int | None = None,
    ) -> Tank | None:
        """Return a card's tank.

        Args:
            read: what the engine reads.
            device: the card as NVML knows it.
            pid: the engine's process.
            others: the names of this program's other engines, by process id.
            error_bytes: all that the engine's process has, as an error's text of that moment says
                it, to two decimals; it counts where neither the engine has asked the driver nor
                anything was learned.
        """
        users = card_users(self._sensors.processes(device), pid, others)
        context_bytes = self._context_bytes.get(pid) if pid is not None else None
        engine_bytes = read.engine_bytes
        if engine_bytes is None and context_bytes is not None:
            engine_bytes = context_bytes + (read.reserved_bytes or 0)
        if engine_bytes is None:
            engine_bytes = error_bytes
        users = msgspec.structs.replace(users, engine_bytes=engine_bytes)
        return tank_of_card(read, device.memory_total_bytes, users)
