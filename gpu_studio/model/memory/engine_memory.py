"""The allocator readings of one engine for each device, as known to the window.

The readings of one device's memory since the window opened.

The tanks of the engines' readings, combined with the driver's numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.tank import Tank, card_users, tank_of_card, tank_of_ram, tank_of_sensors
from gpu_studio.core.messages.engine_messages import EngineDescribed, EngineEnded
from gpu_studio.core.messages.memory_messages import (
    CacheEmptied,
    MemoryRead,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.messages.run_messages import RunStarted
from gpu_studio.model.engine_session import EngineState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.memory.oom_experiment import LabResult
    from gpu_studio.model.sensors import Sensors


WINDOW_S = 120.0
_GAP_S = 4.0  # a longer time without readings is a gap in the curve
_MOST_MARKS = 400
_SAME_MARK_S = 1.0  # a loop may free at every step: one mark is enough for this long


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An event; ``is_failure`` has the color of failures, ``is_minor`` is labeled last."""

    at_s: float
    label: str
    is_failure: bool = False
    is_minor: bool = False


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One reading: ``lower`` is allocated or the engine's process, ``upper`` reserved. Bytes."""

    at_s: float
    lower_bytes: int
    upper_bytes: int | None = None


class MemoryHistory:
    """Readings and marks of one device on the window's clock, oldest first."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.marks: list[Mark] = []
        self._times: list[float] = []

    def add(self, read: MemoryRead, at_s: float) -> bool:
        """Keep a reading; return False for one without numbers (no CUDA context)."""
        lower = read.process_bytes if read.allocated_bytes is None else read.allocated_bytes
        if lower is None:
            return False
        at_s = max(at_s, self._times[-1] if self._times else 0.0)
        self.points.append(
            Point(
                at_s=at_s,
                lower_bytes=lower,
                upper_bytes=read.reserved_bytes,
            )
        )
        self._times.append(at_s)
        if at_s - self._times[0] > 2 * WINDOW_S:  # from time to time, not at every reading
            self._forget(at_s - WINDOW_S)
        return True

    def _forget(self, before_s: float) -> None:
        """Keep what the curve shows: an experiment reads 60 times a second."""
        spare = max(bisect_left(self._times, before_s) - 1, 0)
        del self.points[:spare], self._times[:spare]

    def mark(self, mark: Mark) -> None:
        """Keep an event; the same event soon after adds no mark."""
        last = self.marks[-1] if self.marks else None
        again = None if last is None else msgspec.structs.replace(last, at_s=mark.at_s)
        if last is not None and again == mark and mark.at_s - last.at_s < _SAME_MARK_S:
            return
        self.marks.append(mark)
        del self.marks[:-_MOST_MARKS]

    def since(self, start_s: float) -> list[Point]:
        """Return the readings since a time, and the one before, which was still valid then."""
        return self.points[max(bisect_left(self._times, start_s) - 1, 0) :]

    def curve(self, start_s: float, column: str = "lower") -> tuple[list[float], list[float]]:
        """Return x in seconds and y in bytes, with a NaN in each gap.

        Args:
            start_s: the first time, in seconds.
            column: ``lower`` or ``upper``.
        """
        xs: list[float] = []
        ys: list[float] = []
        for point in self.since(start_s):
            value: int | None = getattr(point, f"{column}_bytes")
            if value is None:
                continue
            if xs and point.at_s - xs[-1] > _GAP_S:
                xs.append(xs[-1])
                ys.append(math.nan)
            xs.append(point.at_s)
            ys.append(float(value))
        return xs, ys


# The engine's name of a reading's moment: its name in the curves.
_MARKS = {
    "start": "experiment", "oom": "out of memory", "empty_cache": "empty_cache", "freed": "freed",
}  # fmt: skip


class EngineMemory(QObject):
    """Listens to the sessions of one engine after another.

    Args:
        clock: returns the seconds since the window opened: the curves' x.
        identity_of: returns the lasting identity of the device at an address.

    Signals:
        read_taken(str): a newer reading of a device is available, by the device's identity.
        segments_taken(str): newer segments of a device are available.
        marked(str): a device has a new mark.
        forgotten(): the engine ended, and its memory with it.
    """

    read_taken = Signal(str)
    segments_taken = Signal(str)
    marked = Signal(str)
    forgotten = Signal()

    def __init__(
        self,
        clock: Callable[[], float],
        identity_of: Callable[[str], str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._clock, self._identity_of = clock, identity_of
        self._clock_offset_s: float | None = None
        self._histories: dict[str, MemoryHistory] = {}
        self._latest: dict[str, MemoryRead] = {}
        self._segments: dict[str, SegmentsRead] = {}
        self._device = ""
        self._session: EngineSession | None = None
        self.pid: int | None = None

    def attach(self, session: EngineSession) -> None:
        """Listen to this session from now on."""
        self._session = session
        session.request_submitted.connect(self._follow)
        session.engine_described.connect(self._on_engine_described)
        session.engine_lost.connect(self._mark_death)
        if session.description is not None:
            self.pid = session.description.pid

    @property
    def is_there(self) -> bool:
        """Whether the engine has not ended; its readings stay when it does."""
        return self._session is not None and self._session.state is not EngineState.ABSENT

    def history(self, identity: str) -> MemoryHistory:
        """Return the history of a device's memory."""
        return self._histories.setdefault(identity, MemoryHistory())

    def latest(self, identity: str) -> MemoryRead | None:
        """Return the newest reading of a device that this engine took."""
        return self._latest.get(identity)

    def segments(self, identity: str) -> SegmentsRead | None:
        """Return the newest segments of a device."""
        return self._segments.get(identity)

    def is_steady(self, identity: str, seconds: float) -> bool:
        """Return whether reserved memory was constant in the last seconds, so readings agree."""
        latest = self._latest.get(identity)
        if latest is None:
            return False
        points = self.history(identity).since(self._clock() - seconds)
        return all(point.upper_bytes == latest.reserved_bytes for point in points)

    def mark(
        self, address: str, label: str, at_s: float | None = None, *, is_failure: bool = False,
        is_minor: bool = False,
    ) -> None:  # fmt: skip
        """Add a mark for an event on a device."""
        identity = self._identity_of(address)
        at_s = self._clock() if at_s is None else at_s
        mark = Mark(at_s=at_s, label=label, is_failure=is_failure, is_minor=is_minor)
        self.history(identity).mark(mark)
        self.marked.emit(identity)

    def _follow(self, reply: Reply) -> None:
        reply.event_received.connect(self._receive)

    def _receive(self, event: Event) -> None:
        match event:
            case MemoryRead():
                self._add_read(event)
            case SegmentsRead():
                self._add_read(event.read)
                identity = self._identity_of(event.device)
                self._segments[identity] = event
                self.segments_taken.emit(identity)
            case CacheEmptied():
                self._add_read(event.before)
                self._add_read(event.after)
            case RunStarted():
                self.mark(event.device, "run")
            case StageBegan() if self._device:
                self.mark(self._device, event.stage)
            case EngineEnded():
                self._forget_engine()
            case _:
                pass

    def _add_read(self, read: MemoryRead) -> None:
        identity = self._identity_of(read.device)
        if self._clock_offset_s is None:
            self._clock_offset_s = self._clock() - read.taken_at_s
        at_s = read.taken_at_s + self._clock_offset_s
        self.history(identity).add(read, at_s)
        self._latest[identity] = read
        self._device = read.device
        if read.mark in _MARKS:
            self.mark(
                read.device, _MARKS[read.mark], at_s, is_failure=read.mark == "oom",
                is_minor=read.mark == "freed",
            )  # fmt: skip
        self.read_taken.emit(identity)

    def _forget_engine(self) -> None:
        """Drop the readings: an engine's memory ends with it; the next one has another clock."""
        self._clock_offset_s = self.pid = None
        self._latest.clear()
        self._segments.clear()
        self.forgotten.emit()

    def _mark_death(self) -> None:
        self.mark(self._device or "cpu", "PyTorch ended", is_failure=True)
        self._forget_engine()

    def _on_engine_described(self, description: EngineDescribed) -> None:
        self._forget_engine()
        self.pid = description.pid


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
