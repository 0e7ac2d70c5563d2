"""``empty_cache``: the memory that it can free, and the memory that it freed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import CacheEmptied, EmptyCache
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.memory_messages import MemoryRead
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.sensors import Sensors

_MIB = 1 << 20
_READINGS = 2  # the first one may be from just before the cache was emptied


def predict_emptying(read: MemoryRead) -> str:
    """Return a sentence on what empty_cache can free now; empty without PyTorch's numbers."""
    if read.reserved_bytes is None or read.allocated_bytes is None:
        return ""
    holes = read.reserved_bytes - read.allocated_bytes
    if holes <= 0:
        return "empty_cache has nothing to free: no reserved memory is empty."
    freed = read.releasable_bytes
    if freed is None:
        return f"{format_bytes(holes)} of reserved memory are empty."
    if freed >= holes:
        return f"empty_cache can free all {format_bytes(holes)} of reserved, empty memory."
    rest = format_bytes(holes - freed)
    return (
        f"empty_cache can free {format_bytes(freed)} of {format_bytes(holes)} of reserved, empty "
        f"memory. The other {rest} share segments with live tensors."
    )


class CacheEmptying(QObject):
    """Empties one card's cache at a time and keeps the outcome.

    Signals:
        changed(): it began or ended, its result was cleared, or nvidia-smi's number arrived.

    Attributes:
        result: the last outcome; empty before the first.
    """

    changed = Signal()

    def __init__(self, sensors: Sensors, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sensors = sensors
        self._reply: Reply | None = None
        self._device: Device | None = None
        self._awaited_readings = 0
        self.result = ""
        sensors.reading_taken.connect(self._on_reading)

    @property
    def is_going_on(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._reply is not None

    def run(self, session: EngineSession, address: str, device: Device | None) -> None:
        """Give PyTorch's free segments on a card back to the driver.

        Args:
            session: the engine of the allocator.
            address: the card's address.
            device: the card as NVML reports it; None for a simulated card.
        """
        if self._reply is not None:
            return
        self._reply, self._device = session.submit(EmptyCache(device=address)), device
        self._reply.finished.connect(self._finish)
        self._awaited_readings = 0
        self._set_result("")

    def forget(self) -> None:
        """Clear the outcome: the card or the engine changed."""
        self._awaited_readings = 0
        if self.result:
            self._set_result("")

    def _finish(self) -> None:
        assert self._reply is not None
        event, self._reply = self._reply.last, None
        match event:
            case CacheEmptied():
                freed = format_bytes(event.freed_bytes)
                expected = format_bytes(event.predicted_bytes)
                as_predicted = event.freed_bytes == event.predicted_bytes
                comparison = "as predicted" if as_predicted else f"predicted {expected}"
                result = f"empty_cache freed {freed}, {comparison}."
                self._awaited_readings = 0 if self._device is None else _READINGS
            case RequestFailed():
                result = f"empty_cache failed: {event.failure.message}"
            case EngineEnded():
                result = "empty_cache did not answer. The engine ended, so all its memory is free."
            case _:
                return
        self._set_result(result)

    def _on_reading(self) -> None:
        """Add the card's use from NVML, which nvidia-smi shows as well."""
        if not self._awaited_readings or self._device is None:
            return
        self._awaited_readings -= 1
        if self._awaited_readings:
            return
        telemetry = self._sensors.latest(self._device)
        used_bytes = telemetry.memory_used_bytes if telemetry else None
        total_bytes = self._device.memory_total_bytes
        if used_bytes is not None and total_bytes is not None:
            shown = f"{used_bytes / _MIB:.0f} MiB of {total_bytes / _MIB:.0f} MiB"
            self._set_result(f"{self.result} nvidia-smi shows {shown} in use.")

    def _set_result(self, result: str) -> None:
        self.result = result
        self.changed.emit()
