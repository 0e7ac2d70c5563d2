"""The state of the Memory tab: the chosen device's memory now and over time, and its actions."""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.card_programs import memory_by_program, spill_notice
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.memory.modelled_cards import modelled_cards
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    CacheEmptied,
    EmptyCache,
    ReadMemory,
    ReadSegments,
)
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.model.devices.card_memory import card_state
from gpu_studio.model.devices.device_board import DeviceRow
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.engine_memory import EngineMemory, PcMemory
from gpu_studio.model.memory.oom_experiment import OomExperiment, OomState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.card_programs import CardState
    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.core.memory.tank import Tank
    from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.notice import Notice
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.memory.engine_memory import MemoryHistory
    from gpu_studio.model.memory.oom_experiment import LabResult
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.studio import Studio


def modelled_rows() -> list[DeviceRow]:
    """Return the cards that can be simulated, smallest first."""
    return [
        DeviceRow(
            identity=card.address,
            name=card.name,
            label=short_name(card.name),
            address=card.address,
            is_modelled=True,
        )
        for card in modelled_cards()
    ]


def choice_title(device: DeviceRow) -> str:
    """Return a device's name in the list of those whose memory can be shown."""
    if device.is_cpu:
        return f"RAM of {device.pc}" if device.pc else "This PC's RAM"
    if device.is_modelled:
        return f"Simulated: {device.label}"
    name = short_name(device.name)
    return f"{device.address} {name}" if device.address is not None else name_at(device.pc, name)


class MemoryDevices(QObject):
    """The devices of the PC and the cards that can be simulated; one of them is chosen.

    Follows the card in use until the user chooses. `choices` are the PC, then each of its cards,
    then the cards that can be simulated.

    Signals:
        choices_changed(): devices may have been added, removed or renumbered.
        chosen_changed(): another device is chosen.
    """

    choices_changed = Signal()
    chosen_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._board = studio.board
        self.choices: list[DeviceRow] = []
        self._identity = "cpu"
        self._is_chosen_by_hand = False
        self._board.changed.connect(self._list)
        studio.session.engine_described.connect(self._list)
        self._list()

    @property
    def chosen(self) -> DeviceRow:
        return next((c for c in self.choices if c.identity == self._identity), self.choices[0])

    def choose(self, identity: str) -> None:
        """Choose another device."""
        self._is_chosen_by_hand = True
        self._look_at(identity)

    def _list(self) -> None:
        choices = list(self._board.of_pytorch)
        with contextlib.suppress(
            MissingResourceError
        ):  # without the table no card can be simulated
            choices += modelled_rows()
        self.choices = choices
        self.choices_changed.emit()
        if not self._is_chosen_by_hand or self._identity not in [c.identity for c in choices]:
            self._look_at(self._preferred.identity)

    @property
    def _preferred(self) -> DeviceRow:
        """The card in use, or else the first one that PyTorch can use, real or simulated."""
        current = self._board.current
        usable = [row for row in self._board.usable_here if not row.is_cpu]
        if usable:
            return current if current in usable else usable[0]
        modelled = (choice for choice in self.choices if choice.is_modelled)
        return next(modelled, self._board.cpu) if self._board.is_complete else self._board.cpu

    def _look_at(self, identity: str) -> None:
        if identity != self._identity and any(c.identity == identity for c in self.choices):
            self._identity = identity
            self.chosen_changed.emit()


_MOST_PROGRAMS = 4
_POLL_MS, _FAST_POLL_MS = 500, 100  # the segment map moves
# Of the program's own engine; anything else is work that needs the card.
_NO_WORK = (ReadMemory, ReadSegments, DescribeEngine, EmptyCache)


class Emptied(NamedTuple):
    """What came of the last empty_cache.

    Attributes:
        freed_bytes: None before the first, and if it failed.
        trouble: why it failed; empty if it did not.
    """

    freed_bytes: int | None = None
    trouble: str = ""


class MemoryModel(QObject):
    """Reads the chosen device's memory and remembers it.

    The engine of an experiment is shown as long as it is there, else the one that measures.
    `devices` has the chosen device, `experiment` fills it, and `emptied` is what came of emptying
    the cache.

    Signals:
        chosen_changed(): another device is chosen, or another engine is shown.
        memory_changed(): the engine or the sensors have a newer reading, or newer segments.
        session_changed(): the state of an engine that measures changed.

    Attributes:
        studio: the whole program; leads to its pages.
    """

    chosen_changed = Signal()
    memory_changed = Signal()
    session_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.studio = studio
        self._began_s = time.monotonic()
        self._polls = QTimer(self)
        self._polls.timeout.connect(self._on_poll)
        self._with_segments = False
        self.emptied = Emptied()
        self._emptying: Reply | None = None
        self.experiment = OomExperiment(studio, self)
        self.devices = MemoryDevices(studio, self)
        self._modelled = self._memory_of(studio.modelled, {})
        self._follow_experiments(studio.modelled, self._modelled)
        self._known: dict[Pc, PcMemory] = {}
        self._is_watched = False
        for pc in studio.pcs.all:
            self._follow(pc)
        studio.pcs.added.connect(self._follow)
        studio.pcs.removed.connect(self._forget)
        self.experiment.state_changed.connect(self._on_experiment)
        self.devices.chosen_changed.connect(self._on_device_chosen)

    def _memory_of(
        self, session: EngineSession, histories: dict[str, MemoryHistory]
    ) -> EngineMemory:
        memory = EngineMemory(self._now, self.studio.board.identity_of, histories, self)
        memory.attach(session)
        memory.read_taken.connect(self._on_memory_read)
        memory.forgotten.connect(self.memory_changed)
        return memory

    def _follow(self, pc: Pc) -> None:
        histories: dict[str, MemoryHistory] = {}
        main, lab = self._memory_of(pc.session, histories), self._memory_of(pc.lab, histories)
        self._known[pc] = PcMemory(pc.sensors, main, lab)
        pc.session.state_changed.connect(self.session_changed)
        self._follow_experiments(pc.lab, lab)
        pc.lab.state_changed.connect(self._on_lab)
        pc.session.engine_described.connect(self._forget_emptied)
        pc.session.request_submitted.connect(partial(self._on_request, pc))
        pc.sensors.want_programs("memory", self._is_watched)
        pc.sensors.reading_taken.connect(self._on_reading)

    def _follow_experiments(self, session: EngineSession, memory: EngineMemory) -> None:
        """Follow an engine that does nothing else; of the others, only what is asked here."""
        session.request_submitted.connect(memory.follow)
        session.state_changed.connect(memory.on_state)

    def _forget(self, pc: Pc) -> None:
        self._known.pop(pc)

    # ── the choice ───────────────────────────────────────────────────────────────────────────

    @property
    def chosen(self) -> DeviceRow:
        """The chosen device."""
        return self.devices.chosen

    @property
    def pc(self) -> Pc:
        """The PC of the chosen device; this one for a simulated card."""
        return self.studio.pcs.of(self.chosen.identity)

    def reached(self, result: LabResult) -> Tank | None:
        """Return the tank of the moment that a result is about; None without a reading."""
        if result.reached is None:
            return None
        pc = self.studio.pcs.of(result.request.device)
        inventory = pc.sensors.inventory
        device = inventory.find(result.request.device) if inventory else None
        return self._known[pc].of(result.reached, device, result.pid)

    @property
    def is_of_experiment(self) -> bool:
        """Whether the chosen card's memory is that of an experiment, whose engine is there."""
        device = self.experiment.device
        is_on_it = bool(device) and self.studio.board.identity_of(device) == self.chosen.identity
        return is_on_it and self._known[self.pc].lab.is_there

    @property
    def _memory(self) -> EngineMemory:
        if self.chosen.is_modelled:
            return self._modelled
        known = self._known[self.pc]
        return known.lab if self.is_of_experiment else known.main

    @property
    def session(self) -> EngineSession:
        """The session of the engine whose memory is shown."""
        if self.chosen.is_modelled:
            return self.studio.modelled
        return self.pc.lab if self.is_of_experiment else self.pc.session

    # ── the readings ─────────────────────────────────────────────────────────────────────────

    def watch(self, *, with_segments: bool = False) -> None:
        """Read the memory now and again and again, until `unwatch`: a page shows it."""
        self._with_segments = with_segments
        self._polls.start(_FAST_POLL_MS if with_segments else _POLL_MS)
        self.follow_sensors(is_seen=True)
        self._on_poll()

    def unwatch(self) -> None:
        """Read nothing that nobody sees."""
        self._polls.stop()
        self.follow_sensors(is_seen=False)

    def follow_sensors(self, *, is_seen: bool) -> None:
        """Take the sensors' readings while a page shows them."""
        self._is_watched = is_seen
        for pc in self._known:
            pc.sensors.want_programs("memory", is_seen)

    def _on_poll(self) -> None:
        self.poll(with_segments=self._with_segments)

    def poll(self, *, with_segments: bool = False) -> None:
        """Ask for one reading if the engine is idle."""
        if self.chosen.is_modelled:
            self.studio.modelled.start()
        address, session = self.chosen.address, self.session
        if address is None or not session.is_free:
            return
        is_map = with_segments and not self.chosen.is_cpu
        reply = session.submit((ReadSegments if is_map else ReadMemory)(device=address))
        self._take(session, reply)

    def _take(self, session: EngineSession, reply: Reply) -> None:
        """Follow a question to an engine that has other work as well."""
        if session is self.pc.session:
            self._known[self.pc].main.follow(reply)

    @property
    def history(self) -> MemoryHistory:
        """The history of the chosen device's memory."""
        return self._memory.history(self.chosen.identity)

    @property
    def latest(self) -> MemoryRead | None:
        """The engine's newest reading of the chosen device."""
        return self._memory.latest(self.chosen.identity)

    @property
    def segments(self) -> SegmentsRead | None:
        """The newest segments."""
        return self._memory.segments(self.chosen.identity)

    @property
    def tank(self) -> Tank | None:
        """The tank of the chosen device, now; None before the first reading."""
        device, read = self.chosen.device, self.latest
        here, pid = self._known[self.pc], self._memory.pid
        tank = here.of(read, device, pid) if read is not None else None
        return tank or here.without_engine(device)

    @property
    def programs(self) -> list[tuple[str, int]]:
        """The other programs on the chosen card with their bytes, as the driver reports them."""
        return memory_by_program(self._processes, _MOST_PROGRAMS, self._own_pids)

    @property
    def spilled(self) -> Notice | None:
        """What found no place on the chosen card and is in the PC's RAM; None if nothing is."""
        own = dict.fromkeys(self._own_pids, "GPU Studio")
        return spill_notice(self._processes, own, self._card_state)

    @property
    def spilled_bytes(self) -> int:
        """How much that is; 0 for none."""
        if self.spilled is None:
            return 0
        return sum(self._card_state.spilled_bytes([one]) for one in self._processes)

    @property
    def _processes(self) -> Sequence[GpuProcess]:
        device = self.chosen.device
        is_real = self.chosen.is_real_card and device is not None
        return self.pc.sensors.processes(device) if is_real and device is not None else ()

    @property
    def _own_pids(self) -> list[int]:
        known = self._known[self.pc]
        return [one.pid for one in (known.main, known.lab) if one.pid is not None]

    @property
    def _card_state(self) -> CardState:
        return card_state(self.chosen.device, self.pc.sensors)

    @property
    def sizes_bytes(self) -> tuple[int, int] | None:
        """The chosen card's total memory, and the memory that is free for a separate engine."""
        return self._known[self.pc].sizes_bytes(self.chosen)

    # ── empty_cache ──────────────────────────────────────────────────────────────────────────

    @property
    def can_empty_cache(self) -> bool:
        """Whether PyTorch holds empty memory on the chosen card that it could give back."""
        read = self.latest
        has_holes = read is not None and (read.reserved_bytes or 0) > (read.allocated_bytes or 0)
        is_idle = self.experiment.state is OomState.IDLE and not self.is_emptying
        return not self.chosen.is_cpu and has_holes and is_idle

    @property
    def is_emptying(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._emptying is not None

    def empty_cache(self) -> None:
        """Give PyTorch's free segments back to the driver."""
        address, session = self.chosen.address, self.session
        if address is not None and self.can_empty_cache:
            self._emptying = reply = session.submit(EmptyCache(device=address))
            self._take(session, reply)
            reply.finished.connect(partial(self._on_emptied, self.chosen.identity))
            self._forget_emptied()

    def _forget_emptied(self) -> None:
        """Clear the outcome: the card or the engine changed."""
        self.emptied = Emptied()
        self.memory_changed.emit()

    def _on_emptied(self, identity: str) -> None:
        reply, self._emptying = self._emptying, None
        if reply is None:
            return
        found = _emptied_by(reply.last)
        if found is not None and identity == self.chosen.identity:
            self.emptied = found
        self.memory_changed.emit()

    # ── events ───────────────────────────────────────────────────────────────────────────────

    def _on_device_chosen(self) -> None:
        self._forget_emptied()
        self._emit_all()

    def _on_reading(self) -> None:
        if not self._is_watched or self.sender() is not self.pc.sensors:
            return
        if self.session.is_free:
            self._known[self.pc].learn(self.chosen.identity, self.chosen.device, self._memory)
        if not self.chosen.is_modelled:
            self.memory_changed.emit()

    def _on_memory_read(self, identity: str) -> None:
        if identity == self.chosen.identity and self.sender() is self._memory:
            self.memory_changed.emit()

    def _on_request(self, pc: Pc, reply: Reply) -> None:
        """Leave the card to other work."""
        device = self.experiment.device
        is_there = bool(device) and self.studio.pcs.of(device) is pc
        if is_there and not isinstance(reply.request, _NO_WORK):
            self.experiment.end_engine()

    def _on_lab(self, state: EngineState) -> None:
        if state is EngineState.ABSENT:
            self._emit_all()

    def _on_experiment(self) -> None:
        if self.experiment.state is OomState.WAITING:
            self._forget_emptied()
        self._emit_all()

    def _emit_all(self) -> None:
        self.chosen_changed.emit()
        self.memory_changed.emit()

    def _now(self) -> float:
        return time.monotonic() - self._began_s


def _emptied_by(answer: Event | None) -> Emptied | None:
    """Return what came of empty_cache; None if it was taken back."""
    match answer:
        case CacheEmptied():
            return Emptied(answer.freed_bytes)
        case RequestFailed():
            return Emptied(trouble=f"empty_cache failed: {answer.failure.message}")
        case EngineEnded():
            words = "empty_cache did not answer. PyTorch ended, so all its memory is free."
            return Emptied(trouble=words)
        case _:
            return None
