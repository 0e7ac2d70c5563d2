"""The memory of the chosen card as the window knows it: now, over time, and what to say of it."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.memory.tank import Tank, tank_of_card, tank_of_ram, tank_of_sensors
from gpu_studio.core.protocol import DeviceUsed, Event, ReadMemory, ReadSegments, Request
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.model.cache_emptying import CacheEmptying, predict_emptying
from gpu_studio.model.card_access import MemoryChoice, memory_choices, modelled_choices
from gpu_studio.model.card_account import CardAccount
from gpu_studio.model.engine_memory import EngineMemory
from gpu_studio.model.memory_history import WINDOW_S
from gpu_studio.model.oom_experiment import OomExperiment, OomState

_HOLD_MS = 8000

MAIN, LAB = "main", "lab"
ENGINE_NAMES = {MAIN: "The program's engine", LAB: "The lab's engine"}

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Device
    from gpu_studio.core.protocol import MemoryRead, SegmentsRead
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.memory_history import MemoryHistory
    from gpu_studio.model.oom_experiment import LabResult
    from gpu_studio.model.studio import Studio


class MemoryModel(QObject):
    """Reads the chosen device's memory in the chosen engine and remembers it.

    `experiment` and `emptying` are what can be done to it.

    Signals:
        choices_changed(): devices came, went or are numbered otherwise.
        chosen_changed(): another device or another engine is looked at.
        memory_changed(): there is a newer reading, of the engine or of the sensors.
        segments_changed(): there are newer segments.
        marks_changed(): something happened that the curves mark.
    """

    choices_changed = Signal()
    chosen_changed = Signal()
    memory_changed = Signal()
    segments_changed = Signal()
    marks_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._session = studio.session
        self._began_s = time.monotonic()
        self.emptying = CacheEmptying(studio.sensors, self)
        self.experiment = OomExperiment(studio.lab, self)
        self._main, self._lab, self._modelled = (
            EngineMemory(self._now, self._identity_of, self) for _ in range(3)
        )
        self._main.attach(studio.session)
        self._choices: list[MemoryChoice] = []
        self._chosen, self._engine = "cpu", MAIN
        self._chosen_by_hand = False
        self._own_mib: int | None = None
        self._account = CardAccount(studio.sensors)
        self._is_held = False
        self._release = QTimer(self)
        self._release.setSingleShot(True)
        self._release.setInterval(_HOLD_MS)
        self._release.timeout.connect(self._let_go)
        self._listen(studio)
        self._list_choices()

    def _listen(self, studio: Studio) -> None:
        for memory in (self._main, self._lab, self._modelled):
            memory.read_taken.connect(self._tell_memory)
            memory.segments_taken.connect(self._tell_segments)
            memory.marked.connect(self._tell_marks)
            memory.forgotten.connect(self.memory_changed)
        studio.lab.session_began.connect(self._attach_lab)
        studio.lab.session_ended.connect(self._detach_lab)
        self.experiment.state_changed.connect(self._follow_experiment)
        self.experiment.results_changed.connect(self._hold)
        self._session.event_received.connect(self._receive)
        self._session.engine_described.connect(self._take_engine)
        studio.sensors.inventory_changed.connect(self._list_choices)
        studio.sensors.reading_taken.connect(self._take_sensors)

    # ── what is looked at ────────────────────────────────────────────────────────────────────

    @property
    def choices(self) -> list[MemoryChoice]:
        """The PC itself, then every card of it, then those that can be modelled."""
        return self._choices

    @property
    def chosen(self) -> MemoryChoice:
        """The device that is looked at."""
        return next((c for c in self._choices if c.identity == self._chosen), self._choices[0])

    @property
    def device(self) -> Device | None:
        """What the PC says of it; None before it was found, and of a modelled card."""
        inventory = self._studio.sensors.inventory
        if inventory is None:
            return None
        return next((d for d in inventory.devices if d.identity == self._chosen), None)

    @property
    def has_usable_card(self) -> bool:
        """Whether the program's engine can use a card of this PC."""
        return any(choice.is_real_card and choice.address for choice in self._choices)

    def choose(self, identity: str) -> None:
        """Look at another device."""
        self._chosen_by_hand = True
        self._look_at(identity)

    def choose_own(self, mib: int) -> None:
        """Model a card of one's own size and look at it; raises `StudioError` for none."""
        self._own_mib = card_at(f"model:{mib}").total_bytes >> 20
        self._list_choices()
        self.choose(f"model:{mib}")

    @property
    def engines(self) -> list[str]:
        """The engines whose allocator can be shown: `MAIN`, and `LAB` once it used this card."""
        if self.chosen.is_modelled:
            return [LAB]
        is_used = self._lab.session is not None or bool(self._lab.history(self._chosen).points)
        return [MAIN, LAB] if self.chosen.is_card and is_used else [MAIN]

    @property
    def engine(self) -> str:
        """The engine whose allocator is shown."""
        return self._engine if self._engine in self.engines else self.engines[0]

    def show_engine(self, engine: str) -> None:
        """Show another engine's allocator."""
        if engine != self._engine:
            self._engine = engine
            self.emptying.forget()
            self._tell_all()

    @property
    def session(self) -> EngineSession | None:
        """The engine that is shown, where it lives."""
        if self.chosen.is_modelled:
            return self._studio.lab.modelled
        return self._lab.session if self.engine == LAB else self._session

    def poll(self, *, with_segments: bool = False) -> None:
        """Ask for one reading, if the engine has nothing else to do."""
        address, session = self.chosen.address, self.session
        if self.chosen.is_modelled and session is None:
            session = self._studio.lab.engage(is_modelled=True)
        if address is None or session is None or not session.is_free:
            return
        if with_segments and self.chosen.is_card:
            session.submit(ReadSegments(device=address))
        else:
            session.submit(ReadMemory(device=address))

    # ── what there is to see ─────────────────────────────────────────────────────────────────

    @property
    def now_s(self) -> float:
        """Seconds since the window opened: the curves' x."""
        return self._now()

    @property
    def history(self) -> MemoryHistory:
        """What the chosen device's memory held."""
        return self._memory.history(self._chosen)

    @property
    def latest(self) -> MemoryRead | None:
        """The newest reading that the engine took of the chosen device."""
        return self._memory.latest(self._chosen)

    @property
    def segments(self) -> SegmentsRead | None:
        """The newest segments; for as long as it is held, those that the experiment had."""
        held = self._held
        if held is not None and held.segments is not None:
            return held.segments
        return self._memory.segments(self._chosen)

    @property
    def has_allocator_numbers(self) -> bool:
        """Whether PyTorch has a context on the chosen card, and so numbers of its own."""
        return self.latest is not None and self.latest.allocated_bytes is not None

    @property
    def is_held(self) -> bool:
        """Whether the tank shows what an experiment had reached, and not the present.

        Of a modelled card for some seconds; of a real one as long as the lab's engine is shown,
        which ended with its experiment.
        """
        results, state = self.experiment.results, self.experiment.state
        if not results or state is not OomState.IDLE or results[-1].reached is None:
            return False
        if self._identity_of(results[-1].request.device) != self._chosen:
            return False
        if self.chosen.is_modelled:
            return self._is_held
        return self.engine == LAB and self._lab.session is None

    @property
    def tank(self) -> Tank | None:
        """Where the chosen device's memory is; None until anybody has looked."""
        device, read, held = self.device, self.latest, self._held
        total_bytes = device.memory_total_bytes if device else None
        tank = None
        if held is not None:
            tank = self.tank_reached(held)
        elif read is not None:
            tank = self._tank_of(read, device, self._memory.pid)
        if tank is not None:
            return tank
        telemetry = self._studio.sensors.latest(device) if device else None
        return tank_of_sensors(telemetry, total_bytes) if telemetry else None

    def tank_reached(self, result: LabResult) -> Tank | None:
        """Return the tank of the moment that a result speaks of; None where nothing was read."""
        if result.reached is None:
            return None
        error_text = result.finished.error_text if result.finished is not None else ""
        inventory = self._studio.sensors.inventory
        device = inventory.find(result.request.device) if inventory else None
        error_bytes = read_oom_text(error_text).in_use_bytes
        return self._tank_of(result.reached, device, result.pid, error_bytes)

    @property
    def sizes_bytes(self) -> tuple[int, int] | None:
        """The chosen card's total, and what is free on it for an engine of its own."""
        chosen = self.chosen
        if chosen.is_modelled and chosen.address is not None:
            card = card_at(chosen.address)
            return card.total_bytes, card.free_bytes
        read = self._main.latest(self._chosen)
        if read is not None and read.total_bytes is not None and read.free_bytes is not None:
            return read.total_bytes, read.free_bytes
        device = self.device
        telemetry = self._studio.sensors.latest(device) if device else None
        if device is None or telemetry is None or not device.memory_total_bytes:
            return None
        used_bytes, free_bytes = telemetry.memory_used_bytes, telemetry.memory_free_bytes
        if free_bytes is None and used_bytes is not None:
            free_bytes = device.memory_total_bytes - used_bytes
        return None if free_bytes is None else (device.memory_total_bytes, free_bytes)

    def visible_curve(self, column: str = "lower") -> tuple[list[float], list[float]]:
        """Return the last two minutes: x in seconds, y in bytes; see `MemoryHistory.curve`."""
        return self.history.curve(self.now_s - WINDOW_S, column)

    # ── empty_cache ──────────────────────────────────────────────────────────────────────────

    @property
    def can_empty_cache(self) -> bool:
        """Whether PyTorch holds anything on the chosen card that could be given back."""
        read, session = self.latest, self.session
        has_something = read is not None and bool(read.reserved_bytes)
        is_there = session is not None and self.experiment.state is OomState.IDLE
        return self.chosen.is_card and has_something and is_there and not self.emptying.is_going_on

    @property
    def cache_sentence(self) -> str:
        """What empty_cache did last, or would do now."""
        if not self.chosen.is_card:
            return "empty_cache is for CUDA cards: on the CPU PyTorch keeps no cache of its own."
        if self.session is None:
            return "The lab's engine has ended, and with it all that it had reserved."
        predicted = predict_emptying(self.latest) if self.latest else ""
        return " ".join(text for text in (self.emptying.result, predicted) if text)

    def empty_cache(self) -> None:
        """Give PyTorch's free segments back to the driver."""
        address, session = self.chosen.address, self.session
        if address is not None and session is not None and self.can_empty_cache:
            self._let_go()
            self.emptying.run(session, address, self.device)

    # ── what comes ───────────────────────────────────────────────────────────────────────────

    def _receive(self, _request: Request, event: Event) -> None:
        if isinstance(event, DeviceUsed) and not self._chosen_by_hand:
            self._look_at(self._identity_of(f"cuda:{event.cuda_index}"))

    def _take_engine(self) -> None:
        self.emptying.forget()
        self._list_choices()

    def _take_sensors(self) -> None:
        self._account.learn(self.device, self._memory)
        if self.chosen.is_real_card or not self.chosen.is_card:
            self.memory_changed.emit()

    def _tell_memory(self, identity: str) -> None:
        if identity == self._chosen and self.sender() is self._memory:
            self.memory_changed.emit()

    def _tell_segments(self, identity: str) -> None:
        if identity == self._chosen and self.sender() is self._memory:
            self.segments_changed.emit()

    def _tell_marks(self, identity: str) -> None:
        if identity == self._chosen and self.sender() is self._memory:
            self.marks_changed.emit()

    def _tell_all(self) -> None:
        self.chosen_changed.emit()
        self.memory_changed.emit()
        self.segments_changed.emit()
        self.marks_changed.emit()

    # ── the lab ──────────────────────────────────────────────────────────────────────────────

    def _attach_lab(self, session: EngineSession) -> None:
        if session is self._studio.lab.modelled:
            self._modelled.attach(session)
        else:
            self._lab.attach(session)

    def _detach_lab(self, session: EngineSession) -> None:
        if session is self._lab.session:
            self._lab.detach()
            self._tell_all()

    def _follow_experiment(self) -> None:
        """Show the lab's engine as soon as it works."""
        if self.experiment.state is OomState.WAITING:
            self._is_held = False
            self._engine = LAB
            self._tell_all()

    def _hold(self) -> None:
        """Keep what an experiment reached in sight: it frees everything within milliseconds."""
        self._is_held = bool(self.experiment.results)
        self._release.start()
        self._tell_all()

    def _let_go(self) -> None:
        self._is_held = False
        self._release.stop()
        self.memory_changed.emit()
        self.segments_changed.emit()

    # ── devices ──────────────────────────────────────────────────────────────────────────────

    @property
    def _memory(self) -> EngineMemory:
        if self.chosen.is_modelled:
            return self._modelled
        return self._lab if self.engine == LAB else self._main

    @property
    def _held(self) -> LabResult | None:
        return self.experiment.results[-1] if self.is_held else None

    def _tank_of(
        self,
        read: MemoryRead,
        device: Device | None,
        pid: int | None,
        error_bytes: int | None = None,
    ) -> Tank | None:
        if read.process_bytes is not None:
            return tank_of_ram(read)
        if read.modelled or device is None:
            return tank_of_card(read)
        others = {
            memory.pid: ENGINE_NAMES[name]
            for name, memory in ((MAIN, self._main), (LAB, self._lab))
            if memory.pid not in (None, pid)
        }
        return self._account.tank(read, device, pid, others, error_bytes)

    def _now(self) -> float:
        return time.monotonic() - self._began_s

    def _identity_of(self, address: str) -> str:
        inventory = self._studio.sensors.inventory
        device = inventory.find(address) if inventory else None
        return device.identity if device else address

    def _list_choices(self) -> None:
        inventory, description = self._studio.sensors.inventory, self._session.description
        choices = memory_choices(inventory, description)
        with contextlib.suppress(MissingResourceError):  # then nothing can be modelled
            choices += modelled_choices(self._own_mib)
        if choices != self._choices:
            self._choices = choices
            self.choices_changed.emit()
        if self._chosen_by_hand and self._chosen in [c.identity for c in choices]:
            return
        usable = [c.identity for c in choices if c.is_real_card and c.address]
        if not usable and description is not None and inventory is not None:
            usable = [c.identity for c in choices if c.is_modelled]
        self._look_at(usable[0] if usable else "cpu")

    def _look_at(self, identity: str) -> None:
        if identity != self._chosen and any(c.identity == identity for c in self._choices):
            self._chosen = identity
            self.emptying.forget()
            self._tell_all()
