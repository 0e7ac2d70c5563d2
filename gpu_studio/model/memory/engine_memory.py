"""The allocator readings of one engine for each device, as known to the window.

The readings of one device's memory since the window opened.

The tanks of the engines' readings, combined with the driver's numbers.
"""

from __future__ import annotations

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
from gpu_studio.model.engine_session import EngineState

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.sensors import Sensors


WINDOW_S = 120.0
_STILL_S = 2.0  # the clock waits if nothing has changed for this long
_AXES_S = (5, 6, 8, 10, 15, 20, 30, 45, 60, 90)
_MOST_MARKS = 400


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """An event; ``is_start`` begins an experiment, ``is_failure`` has the color of failures."""

    label: str
    at_s: float = 0.0
    is_start: bool = False
    is_failure: bool = False


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One reading: ``lower`` is allocated or the engine's process, ``upper`` reserved. Bytes."""

    at_s: float
    lower_bytes: int
    upper_bytes: int | None = None


class MemoryHistory:
    """Readings and marks of one device, oldest first, on a clock of their own.

    The clock waits while nothing changes: an experiment of two seconds stays as wide as it is while
    somebody explains its end.
    """

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.marks: list[Mark] = []
        self._taken_at_s: float | None = None
        self.now_s, self._left_s = 0.0, _STILL_S

    def add(self, read: MemoryRead, at_s: float) -> bool:
        """Keep a reading; return False for one without numbers (no CUDA context)."""
        lower = read.process_bytes if read.allocated_bytes is None else read.allocated_bytes
        if lower is None:
            return False
        self.add_values(lower, read.reserved_bytes, at_s)
        return True

    def add_values(self, lower_bytes: int, upper_bytes: int | None, at_s: float) -> None:
        """Keep a reading of these bytes, taken at this time of the window's clock."""
        self._turn_clock(at_s)
        point = Point(at_s=self.now_s, lower_bytes=lower_bytes, upper_bytes=upper_bytes)
        values = [(one.lower_bytes, one.upper_bytes) for one in self.points[-2:]]
        if values == [(lower_bytes, upper_bytes)] * 2:
            del self.points[-1]  # a level needs its two ends
        elif not values or values[-1] != (lower_bytes, upper_bytes):
            self._left_s = _STILL_S
        self.points.append(point)
        if self.now_s - self.points[0].at_s > 2 * WINDOW_S:  # from time to time
            del self.points[: self._first_since(self.now_s - WINDOW_S)]

    def _first_since(self, start_s: float) -> int:
        """Return the place of the reading that was valid at a time."""
        return max(bisect_left(self.points, start_s, key=lambda point: point.at_s) - 1, 0)

    def mark(self, mark: Mark, at_s: float) -> None:
        """Keep an event; that of a reading comes again with its segments."""
        self._turn_clock(at_s)
        self._left_s = _STILL_S
        kept = msgspec.structs.replace(mark, at_s=self.now_s)
        if not self.marks or self.marks[-1] != kept:
            self.marks.append(kept)
        del self.marks[:-_MOST_MARKS]

    def _turn_clock(self, at_s: float) -> None:
        gone_s = max(at_s - (at_s if self._taken_at_s is None else self._taken_at_s), 0.0)
        self.now_s += min(gone_s, self._left_s)
        self._left_s = max(self._left_s - gone_s, 0.0)
        self._taken_at_s = max(at_s, self._taken_at_s or at_s)

    # ── what is drawn ────────────────────────────────────────────────────────────────────────

    @property
    def start_s(self) -> float:
        """Where the drawn part begins: with the last experiment, or some time ago."""
        earliest = max(self.now_s - WINDOW_S, self.points[0].at_s if self.points else 0.0)
        begun = (mark.at_s for mark in reversed(self.marks) if mark.is_start)
        return max(earliest, next(begun, 0.0))

    @property
    def axis_s(self) -> float:
        """The length of the time axis: a round number of seconds with room for what comes."""
        length_s = self.now_s - self.start_s
        return next((float(axis) for axis in _AXES_S if axis > length_s * 1.1), WINDOW_S)

    @property
    def shown(self) -> list[Point]:
        """The drawn readings; the one before them was still valid at the start."""
        return self.points[self._first_since(self.start_s) :]

    @property
    def shown_marks(self) -> list[Mark]:
        """The drawn events, but not the beginning itself; their time counts from the start."""
        start_s = self.start_s
        return [
            msgspec.structs.replace(mark, at_s=mark.at_s - start_s)
            for mark in self.marks
            if mark.at_s >= start_s and not mark.is_start
        ]

    def curve(self, column: str = "lower") -> tuple[list[float], list[float]]:
        """Return x in seconds since the start and y in bytes.

        Args:
            column: ``lower`` or ``upper``.
        """
        start_s = self.start_s
        values = [(point.at_s, getattr(point, f"{column}_bytes")) for point in self.shown]
        kept = [(at_s, value) for at_s, value in values if value is not None]
        return [max(at_s - start_s, 0.0) for at_s, _ in kept], [float(value) for _, value in kept]


# The engine's name of a reading's moment: what the curves show of it.
_MARKS = {
    "start": Mark(label="experiment", is_start=True),
    "oom": Mark(label="out of memory", is_failure=True),
    "empty_cache": Mark(label="empty cache"),
}


class EngineMemory(QObject):
    """Listens to the sessions of one engine after another.

    Args:
        clock: returns the seconds since the window opened.
        identity_of: returns the lasting identity of the device at an address.
        histories: of each device, by identity; the engines of a PC share them.

    Signals:
        read_taken(str): a newer reading of a device, or newer segments; by the device's identity.
        forgotten(): the engine ended, and its memory with it.
    """

    read_taken = Signal(str)
    forgotten = Signal()

    def __init__(
        self,
        clock: Callable[[], float],
        identity_of: Callable[[str], str],
        histories: dict[str, MemoryHistory],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._clock, self._identity_of, self._histories = clock, identity_of, histories
        self._clock_offset_s: float | None = None
        self._latest: dict[str, MemoryRead] = {}
        self._segments: dict[str, SegmentsRead] = {}
        self._device = ""
        self._session: EngineSession | None = None
        self.pid: int | None = None

    def attach(self, session: EngineSession) -> None:
        """Listen to this session from now on."""
        self._session = session
        session.engine_described.connect(self._on_engine_described)
        session.engine_lost.connect(self._mark_death)
        if session.description is not None:
            self.pid = session.description.pid

    @property
    def is_there(self) -> bool:
        """Whether the engine has not ended."""
        return self._session is None or self._session.state is not EngineState.ABSENT

    def history(self, identity: str) -> MemoryHistory:
        """Return the history of a device's memory."""
        return self._histories.setdefault(identity, MemoryHistory())

    def latest(self, identity: str) -> MemoryRead | None:
        """Return the newest reading of a device that this engine took."""
        return self._latest.get(identity) if self.is_there else None

    def segments(self, identity: str) -> SegmentsRead | None:
        """Return the newest segments of a device."""
        return self._segments.get(identity) if self.is_there else None

    def _mark(self, address: str, mark: Mark, at_s: float | None = None) -> None:
        history = self.history(self._identity_of(address))
        history.mark(mark, self._clock() if at_s is None else at_s)

    def follow(self, reply: Reply) -> None:
        """Take what the engine reads of its memory for a request."""
        reply.event_received.connect(self._receive)

    def _receive(self, event: Event) -> None:
        match event:
            case MemoryRead():
                self._add_read(event)
            case SegmentsRead():
                self._segments[self._identity_of(event.device)] = event
                self._add_read(event.read)
            case CacheEmptied():
                self._add_read(event.before)
                self._add_read(event.after)
            case StageBegan() if self._device:
                self._mark(self._device, Mark(label=event.stage))
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
            self._mark(read.device, _MARKS[read.mark], at_s)
        self.read_taken.emit(identity)

    def _forget_engine(self) -> None:
        """Drop the readings: an engine's memory ends with it; the next one has another clock."""
        for identity, read in self._latest.items():
            if read.reserved_bytes:
                self.history(identity).add_values(0, 0, self._clock())
        self._clock_offset_s = self.pid = None
        self._latest.clear()
        self._segments.clear()
        self.forgotten.emit()

    def on_state(self, state: EngineState) -> None:
        """Forget an engine that was ended."""
        if state is EngineState.ABSENT:
            self._forget_engine()

    def _mark_death(self) -> None:
        self._mark(self._device or "cpu", Mark(label="PyTorch ended", is_failure=True))
        self._forget_engine()

    def _on_engine_described(self, description: EngineDescribed) -> None:
        self._forget_engine()
        self.pid = description.pid


_OWN_NAME = "GPU Studio"


class PcMemory:
    """The memory of a PC's engines as tanks, with that of each engine's CUDA context.

    The driver reports a process every now and then, the engine sixty times a second. Their
    difference is the context only if both are from the same moment. So it is learned while the
    engine has no work, and kept while it has.

    Args:
        sensors: NVML's readings.
        main: the engine that measures.
        lab: that of experiments.
    """

    def __init__(self, sensors: Sensors, main: EngineMemory, lab: EngineMemory) -> None:
        self._sensors, self.main, self.lab = sensors, main, lab
        self._context_bytes: dict[int, int] = {}

    def learn(self, identity: str, device: Device | None, memory: EngineMemory) -> None:
        """Use a new reading of the sensors, while the engine has no work.

        Args:
            identity: the device's own in the window.
            device: its facts; None if the sensors do not know it.
            memory: the engine whose allocator is shown.
        """
        read, pid = memory.latest(identity), memory.pid
        if device is None or read is None or read.reserved_bytes is None or pid is None:
            return
        users = card_users(self._sensors.processes(device), pid, {})
        if users.engine_bytes is not None:
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
            memory.pid: _OWN_NAME
            for memory in (self.main, self.lab)
            if memory.pid is not None and memory.pid != pid
        }
        users = card_users(self._sensors.processes(device), pid, others)
        context_bytes = self._context_bytes.get(pid) if pid is not None else None
        engine_bytes = read.engine_bytes
        if engine_bytes is None and context_bytes is not None:
            engine_bytes = context_bytes + (read.reserved_bytes or 0)
        users = msgspec.structs.replace(users, engine_bytes=engine_bytes)
        return tank_of_card(read, device.memory_total_bytes, users)

    def without_engine(self, device: Device | None) -> Tank | None:
        """Return a device's tank from the sensors only; None before their first reading."""
        telemetry = self._sensors.latest(device) if device else None
        if device is None or telemetry is None:
            return None
        return tank_of_sensors(telemetry, device.memory_total_bytes)

    def sizes_bytes(self, chosen: DeviceRow) -> tuple[int, int] | None:
        """Return a card's total memory, and the memory that is free for a separate engine."""
        if chosen.is_modelled and chosen.address is not None:
            card = card_at(chosen.address)
            return card.total_bytes, card.free_bytes
        read = self.main.latest(chosen.identity)
        if read is not None and read.total_bytes is not None and read.free_bytes is not None:
            return read.total_bytes, read.free_bytes
        tank = self.without_engine(chosen.device)
        if tank is None:
            return None
        free_bytes = next(part.size_bytes for part in tank.parts if part.key == "free")
        return tank.total_bytes, free_bytes
