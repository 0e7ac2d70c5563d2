"""The allocator readings of one engine for each device, as known to the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.messages.engine_messages import EngineDescribed, EngineEnded
from gpu_studio.core.messages.memory_messages import (
    CacheEmptied,
    MemoryRead,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.messages.run_messages import RunStarted
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.memory_history import Mark, MemoryHistory

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.engine_session import EngineSession, Reply

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
        self.mark(self._device or "cpu", "engine ended", is_failure=True)
        self._forget_engine()

    def _on_engine_described(self, description: EngineDescribed) -> None:
        self._forget_engine()
        self.pid = description.pid
