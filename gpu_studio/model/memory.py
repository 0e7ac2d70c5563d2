"""The memory of the chosen device as the window knows it: now, over time, and what to say of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.protocol import (
    CacheEmptied,
    DeviceUsed,
    EngineDescribed,
    EngineEnded,
    Event,
    MemoryRead,
    ReadMemory,
    Request,
    RunStarted,
)
from gpu_studio.core.tank import Tank, tank_of_card, tank_of_ram, tank_of_sensors
from gpu_studio.model.cache_emptying import CacheEmptying, predict_emptying
from gpu_studio.model.card_access import MemoryChoice, memory_choices
from gpu_studio.model.memory_history import WINDOW_S, Mark, MemoryHistory
from gpu_studio.model.oom_experiment import OomExperiment

_HOLD_MS = 8000
# What the engine calls the moment of a reading: what the curves call it.
_MARKS = {"start": "experiment", "oom": "out of memory", "empty_cache": "empty_cache"}

if TYPE_CHECKING:
    from gpu_studio.core.devices import Device
    from gpu_studio.model.studio import Studio


class MemoryModel(QObject):
    """Reads the chosen device's memory and remembers it.

    `experiment` and `emptying` are what can be done to it.

    Signals:
        choices_changed(): devices came, went or are numbered otherwise.
        chosen_changed(): another device is looked at.
        memory_changed(): there is a newer reading, of the engine or of the sensors.
        marks_changed(): something happened that the curves mark.
    """

    choices_changed = Signal()
    chosen_changed = Signal()
    memory_changed = Signal()
    marks_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._session = studio.session
        self.emptying = CacheEmptying(studio.session, self)
        self.experiment = OomExperiment(studio.session, self)
        self._began_s = time.monotonic()
        self._clock_offset_s: float | None = None
        self._choices: list[MemoryChoice] = []
        self._chosen = "cpu"
        self._chosen_by_hand = False
        self._histories: dict[str, MemoryHistory] = {}
        self._latest: dict[str, MemoryRead] = {}
        self._held: MemoryRead | None = None
        self._release = QTimer(self)
        self._release.setSingleShot(True)
        self._release.setInterval(_HOLD_MS)
        self._release.timeout.connect(self._let_go)
        self._session.event_received.connect(self._receive)
        self._session.engine_described.connect(self._take_engine)
        self._session.engine_lost.connect(self._mark_death)
        studio.sensors.inventory_changed.connect(self._list_choices)
        studio.sensors.reading_taken.connect(self._take_sensors)
        self._list_choices()

    # ── what is looked at ────────────────────────────────────────────────────────────────────

    @property
    def choices(self) -> list[MemoryChoice]:
        """The PC itself first, then every card."""
        return self._choices

    @property
    def chosen(self) -> MemoryChoice:
        """The device that is looked at."""
        return next((c for c in self._choices if c.identity == self._chosen), self._choices[0])

    @property
    def device(self) -> Device | None:
        """What the PC says of it; None before it was found."""
        inventory = self._studio.sensors.inventory
        if inventory is None:
            return None
        return next((d for d in inventory.devices if d.identity == self._chosen), None)

    def choose(self, identity: str) -> None:
        """Look at another device."""
        self._chosen_by_hand = True
        self._look_at(identity)

    def poll(self) -> None:
        """Ask for one reading, if the engine has nothing else to do."""
        address = self.chosen.address
        if address is not None and self._session.is_free:
            self._session.submit(ReadMemory(device=address))

    # ── what there is to see ─────────────────────────────────────────────────────────────────

    @property
    def now_s(self) -> float:
        """Seconds since the window opened: the curves' x."""
        return time.monotonic() - self._began_s

    @property
    def history(self) -> MemoryHistory:
        """What the chosen device's memory held."""
        return self._history_of(self._chosen)

    @property
    def latest(self) -> MemoryRead | None:
        """The newest reading that this engine took of the chosen device."""
        return self._latest.get(self._chosen)

    @property
    def has_allocator_numbers(self) -> bool:
        """Whether PyTorch has a context on the chosen card, and so numbers of its own."""
        return self.latest is not None and self.latest.allocated_bytes is not None

    @property
    def is_held(self) -> bool:
        """Whether the tank shows what an experiment had reached, and not the present."""
        return self._held is not None and self._identity_of(self._held.device) == self._chosen

    @property
    def tank(self) -> Tank | None:
        """Where the chosen device's memory is; None until anybody has looked.

        For some seconds after an experiment it is what that had reached (`is_held`).
        """
        device, read = self.device, self._held if self.is_held else self.latest
        total_bytes = device.memory_total_bytes if device else None
        if read is not None:
            tank = tank_of_card(read, total_bytes) if self.chosen.is_card else tank_of_ram(read)
            if tank is not None:
                return tank
        telemetry = self._studio.sensors.latest(device) if device else None
        return tank_of_sensors(telemetry, total_bytes) if telemetry else None

    @property
    def sizes_bytes(self) -> tuple[int, int] | None:
        """The chosen card's total and free memory as CUDA gives them, else as NVML does."""
        read, tank = self.latest, self.tank
        if read is not None and read.total_bytes is not None and read.free_bytes is not None:
            held = (read.reserved_bytes or 0) if self.chosen.is_card else 0
            return read.total_bytes, read.free_bytes + held
        if tank is None:
            return None
        return tank.total_bytes, tank.parts[-1].size_bytes

    def visible_curve(self, *, upper: bool = False) -> tuple[list[float], list[float]]:
        """Return the last two minutes: x in seconds, y in bytes."""
        return self.history.curve(self.now_s - WINDOW_S, upper=upper)

    # ── empty_cache ──────────────────────────────────────────────────────────────────────────

    @property
    def can_empty_cache(self) -> bool:
        """Whether PyTorch holds anything on the chosen card that could be given back."""
        read = self.latest
        has_something = read is not None and bool(read.reserved_bytes)
        return self.chosen.is_card and has_something and not self.emptying.is_going_on

    @property
    def cache_sentence(self) -> str:
        """What empty_cache did last, or would do now."""
        if not self.chosen.is_card:
            return "empty_cache is for CUDA cards: on the CPU PyTorch keeps no cache of its own."
        predicted = predict_emptying(self.latest) if self.latest else ""
        return " ".join(text for text in (self.emptying.result, predicted) if text)

    def empty_cache(self) -> None:
        """Give PyTorch's free segments back to the driver."""
        if self.chosen.address is not None and self.can_empty_cache:
            self.emptying.run(self.chosen.address)

    # ── what comes ───────────────────────────────────────────────────────────────────────────

    def _receive(self, _request: Request, event: Event) -> None:
        match event:
            case MemoryRead():
                self._take_read(event)
            case CacheEmptied():
                self._take_read(event.before)
                self._take_read(event.after)
            case RunStarted():
                self._mark(event.device, "run")
            case DeviceUsed() if not self._chosen_by_hand:
                self._look_at(self._identity_of(f"cuda:{event.cuda_index}"))
            case EngineEnded():
                self._forget_engine()
            case _:
                pass

    def _take_read(self, read: MemoryRead) -> None:
        identity = self._identity_of(read.device)
        if self._clock_offset_s is None:
            self._clock_offset_s = self.now_s - read.taken_at_s
        at_s = read.taken_at_s + self._clock_offset_s
        self._history_of(identity).add(read, at_s)
        if read.mark == "freed":
            self._hold(self._latest.get(identity))
        self._latest[identity] = read
        if read.mark in _MARKS:
            self._mark(read.device, _MARKS[read.mark], at_s, is_failure=read.mark == "oom")
        if identity == self._chosen:
            self.memory_changed.emit()

    def _hold(self, read: MemoryRead | None) -> None:
        """Keep what an experiment reached in sight: it frees everything within milliseconds."""
        self._held = read
        self._release.start()

    def _let_go(self) -> None:
        self._held = None
        self._release.stop()
        self.memory_changed.emit()

    def _mark(
        self, address: str, label: str, at_s: float | None = None, *, is_failure: bool = False
    ) -> None:
        identity = self._identity_of(address)
        at_s = self.now_s if at_s is None else at_s
        self._history_of(identity).mark(Mark(at_s=at_s, label=label, is_failure=is_failure))
        if identity == self._chosen:
            self.marks_changed.emit()

    def _forget_engine(self) -> None:
        """What an engine held ends with it, and the next one has a clock of its own."""
        self._clock_offset_s = self._held = None
        self._latest.clear()
        self.memory_changed.emit()

    def _mark_death(self) -> None:
        self._mark(self.chosen.address or "cpu", "engine died", is_failure=True)
        self._forget_engine()

    def _take_engine(self, _description: EngineDescribed) -> None:
        self._forget_engine()
        self.emptying.forget()
        self._list_choices()

    def _take_sensors(self) -> None:
        if not self.has_allocator_numbers:
            self.memory_changed.emit()

    # ── devices ──────────────────────────────────────────────────────────────────────────────

    def _history_of(self, identity: str) -> MemoryHistory:
        return self._histories.setdefault(identity, MemoryHistory())

    def _identity_of(self, address: str) -> str:
        inventory = self._studio.sensors.inventory
        device = inventory.find(address) if inventory else None
        return device.identity if device else address

    def _list_choices(self) -> None:
        inventory = self._studio.sensors.inventory
        choices = memory_choices(inventory, self._session.description)
        if choices == self._choices:
            return
        self._choices = choices
        self.choices_changed.emit()
        usable = [c.identity for c in choices if c.is_card and c.address]
        if not self._chosen_by_hand or self._chosen not in [c.identity for c in choices]:
            self._look_at(usable[0] if usable else "cpu")

    def _look_at(self, identity: str) -> None:
        if identity != self._chosen and any(c.identity == identity for c in self._choices):
            self._chosen = identity
            self.emptying.forget()
            self.chosen_changed.emit()
            self.memory_changed.emit()
            self.marks_changed.emit()
