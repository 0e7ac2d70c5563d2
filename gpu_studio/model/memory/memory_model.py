"""The state of the Memory tab: the chosen device's memory now and over time, and its actions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.devices.card_programs import memory_by_program
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    CacheEmptied,
    EmptyCache,
    ReadMemory,
    ReadSegments,
)
from gpu_studio.core.units import format_bytes
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.engine_memory import WINDOW_S, EngineMemory, Tanks
from gpu_studio.model.memory.memory_devices import Bandwidths, MemoryDevices
from gpu_studio.model.memory.oom_experiment import HeldResult, OomExperiment, OomState

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.memory.tank import Tank
    from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead
    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.engine_session import EngineSession, Reply
    from gpu_studio.model.memory.engine_memory import MemoryHistory
    from gpu_studio.model.memory.oom_experiment import LabResult
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.sensors import Sensors
    from gpu_studio.model.studio import Studio

_MOST_PROGRAMS = 4
MAIN, LAB = "main", "lab"
ENGINE_NAMES = {MAIN: "The program's engine", LAB: "The experiment's engine"}
_MIB = 1 << 20


class _PcMemory(NamedTuple):
    """The memory of a PC's engines: the one that measures, and that of the lab."""

    main: EngineMemory
    lab: EngineMemory
    tanks: Tanks


_READINGS = 2  # the first one may be from just before the cache was emptied


class MemoryModel(QObject):
    """Reads the chosen device's memory in the chosen engine and remembers it.

    `devices` has the chosen device, `tanks` makes its bars, `bandwidths` has what runs measured;
    `experiment` and `emptying` are the actions on it.

    Signals:
        chosen_changed(): another device or engine is chosen.
        memory_changed(): the engine or the sensors have a newer reading.
        segments_changed(): newer segments are available.
        marks_changed(): the curves have a new mark.
        session_changed(): the state of an engine that measures changed.
        closing(): the program is ending: every owner of a thread waits for it.
    """

    chosen_changed = Signal()
    memory_changed = Signal()
    segments_changed = Signal()
    marks_changed = Signal()
    session_changed = Signal()
    closing = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self._began_s = time.monotonic()
        self.snippets = studio.snippets
        self.emptying = CacheEmptying(self)
        self.experiment = OomExperiment(studio, self)
        self.devices = MemoryDevices(studio, self)
        self.bandwidths = Bandwidths(studio, self)
        self._modelled = self._memory_of(studio.modelled)
        self._engine = MAIN
        self._known: dict[Pc, _PcMemory] = {}
        for pc in studio.pcs.all:
            self._follow(pc)
        self._result = HeldResult(self.experiment, self)
        self._listen(studio)

    def _memory_of(self, session: EngineSession) -> EngineMemory:
        memory = EngineMemory(self._now, self._studio.board.identity_of, self)
        memory.attach(session)
        memory.read_taken.connect(self._on_memory_read)
        memory.segments_taken.connect(self._on_segments_read)
        memory.marked.connect(self._on_marked)
        memory.forgotten.connect(self.memory_changed)
        return memory

    def _follow(self, pc: Pc) -> None:
        main, lab = self._memory_of(pc.session), self._memory_of(pc.lab)
        engines = {ENGINE_NAMES[MAIN]: main, ENGINE_NAMES[LAB]: lab}
        self._known[pc] = _PcMemory(main, lab, Tanks(pc.sensors, engines))
        pc.session.state_changed.connect(self.session_changed)
        pc.lab.state_changed.connect(self._lab_changed)
        pc.session.engine_described.connect(self.emptying.forget)
        pc.sensors.reading_taken.connect(self._on_reading)

    def _forget(self, pc: Pc) -> None:
        self._known.pop(pc)

    def _listen(self, studio: Studio) -> None:
        studio.pcs.added.connect(self._follow)
        studio.pcs.removed.connect(self._forget)
        self.experiment.state_changed.connect(self._follow_experiment)
        self.experiment.results_changed.connect(self._emit_all)
        for changed in (self.memory_changed, self.segments_changed):
            self._result.aged.connect(changed)
        self.devices.chosen_changed.connect(self._on_device_chosen)
        studio.closing.connect(self.closing)

    # ── the choice ───────────────────────────────────────────────────────────────────────────

    @property
    def chosen(self) -> DeviceRow:
        """The chosen device."""
        return self.devices.chosen

    @property
    def pc(self) -> Pc:
        """The PC of the chosen device; this one for a simulated card."""
        return self._studio.pcs.of(self.chosen.identity)

    @property
    def tanks(self) -> Tanks:
        """Makes the bars of the chosen device."""
        return self._known[self.pc].tanks

    def reached(self, result: LabResult) -> Tank | None:
        """Return the tank of the moment that a result is about; None without a reading."""
        return self._known[self._studio.pcs.of(result.request.device)].tanks.reached(result)

    @property
    def _main(self) -> EngineMemory:
        return self._known[self.pc].main

    @property
    def _lab(self) -> EngineMemory:
        return self._known[self.pc].lab

    @property
    def engines(self) -> list[str]:
        """The engines whose allocator can be shown: `MAIN`, and `LAB` once it used this card."""
        if self.chosen.is_modelled:
            return [LAB]
        is_used = self._lab.is_there or bool(self._lab.history(self.chosen.identity).points)
        return [MAIN, LAB] if not self.chosen.is_cpu and is_used else [MAIN]

    @property
    def engine(self) -> str:
        """The engine whose allocator is shown."""
        return self._engine if self._engine in self.engines else self.engines[0]

    def show_engine(self, engine: str) -> None:
        """Show another engine's allocator."""
        if engine != self._engine:
            self._engine = engine
            self.emptying.forget()
            self._emit_all()

    @property
    def session(self) -> EngineSession | None:
        """The session of the shown engine; None if that has ended."""
        if not self.chosen.is_modelled and self.engine == MAIN:
            return self.pc.session
        session = self._studio.modelled if self.chosen.is_modelled else self.pc.lab
        return session if self._memory.is_there else None

    def poll(self, *, with_segments: bool = False) -> None:
        """Ask for one reading if the engine is idle."""
        if self.chosen.is_modelled:
            self._studio.modelled.start()
        address, session = self.chosen.address, self.session
        if address is None or session is None or not session.is_free:
            return
        if with_segments and not self.chosen.is_cpu:
            session.submit(ReadSegments(device=address))
        else:
            session.submit(ReadMemory(device=address))

    # ── the readings ─────────────────────────────────────────────────────────────────────────

    @property
    def now_s(self) -> float:
        """Seconds since the window opened: the curves' x."""
        return self._now()

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
        """The newest segments; while the tank is held, the segments of the experiment."""
        held = self._held
        if held is not None and held.segments is not None:
            return held.segments
        return self._memory.segments(self.chosen.identity)

    @property
    def programs(self) -> list[tuple[str, int]]:
        """The programs on the chosen card with their bytes, as the driver reports them now."""
        device = self.chosen.device
        if not self.chosen.is_real_card or device is None or self.is_held:
            return []
        return memory_by_program(self.pc.sensors.processes(device), _MOST_PROGRAMS)

    @property
    def has_allocator_numbers(self) -> bool:
        """Whether PyTorch has a context on the chosen card, and so numbers of its own."""
        return self.latest is not None and self.latest.allocated_bytes is not None

    @property
    def is_held(self) -> bool:
        """Whether the tank shows the end of an experiment instead of the current state.

        For a simulated card, this lasts a few seconds; for a real card, while the lab's engine is
        shown, which ended with its experiment.
        """
        return self._held is not None

    @property
    def tank(self) -> Tank | None:
        """The tank of the chosen device; None before the first reading."""
        device, read, held = self.chosen.device, self.latest, self._held
        tank = None
        if held is not None:
            tank = self.tanks.reached(held)
        elif read is not None:
            tank = self.tanks.of(read, device, self._memory.pid)
        return tank or self.tanks.without_engine(device)

    @property
    def sizes_bytes(self) -> tuple[int, int] | None:
        """The chosen card's total memory, and the memory that is free for a separate engine."""
        read = self._main.latest(self.chosen.identity)
        return self.tanks.sizes_bytes(self.chosen, self.chosen.device, read)

    def visible_curve(self, column: str = "lower") -> tuple[list[float], list[float]]:
        """Return the last two minutes: x in seconds, y in bytes; see `MemoryHistory.curve`."""
        return self.history.curve(self.now_s - WINDOW_S, column)

    # ── empty_cache ──────────────────────────────────────────────────────────────────────────

    @property
    def can_empty_cache(self) -> bool:
        """Whether PyTorch holds memory on the chosen card that it could give back."""
        read, session = self.latest, self.session
        has_something = read is not None and bool(read.reserved_bytes)
        is_there = session is not None and self.experiment.state is OomState.IDLE
        return (
            not self.chosen.is_cpu and has_something and is_there and not self.emptying.is_going_on
        )

    @property
    def cache_sentence(self) -> str:
        """The last outcome of empty_cache, and what it can free now."""
        if self.chosen.is_cpu:
            return "empty_cache is for CUDA cards. PyTorch keeps no cache on the CPU."
        if self.session is None:
            return "The experiment's engine has ended, so its reserved memory is free."
        predicted = predict_emptying(self.latest) if self.latest else ""
        return " ".join(text for text in (self.emptying.result, predicted) if text)

    def empty_cache(self) -> None:
        """Give PyTorch's free segments back to the driver."""
        address, session = self.chosen.address, self.session
        if address is not None and session is not None and self.can_empty_cache:
            self._result.release()
            self.emptying.run(session, address, self.chosen.device, self.pc.sensors)

    # ── events ───────────────────────────────────────────────────────────────────────────────

    def _on_device_chosen(self) -> None:
        self.emptying.forget()
        self._emit_all()

    def _on_reading(self) -> None:
        if self.sender() is not self.pc.sensors:
            return
        self.emptying.look()
        self.tanks.learn(self.chosen.identity, self.chosen.device, self._memory)
        if not self.chosen.is_modelled:
            self.memory_changed.emit()

    def _on_memory_read(self, identity: str) -> None:
        if identity == self.chosen.identity and self.sender() is self._memory:
            self.memory_changed.emit()

    def _on_segments_read(self, identity: str) -> None:
        if identity == self.chosen.identity and self.sender() is self._memory:
            self.segments_changed.emit()

    def _on_marked(self, identity: str) -> None:
        if identity == self.chosen.identity and self.sender() is self._memory:
            self.marks_changed.emit()

    def _emit_all(self) -> None:
        self.chosen_changed.emit()
        self.memory_changed.emit()
        self.segments_changed.emit()
        self.marks_changed.emit()

    # ── the lab ──────────────────────────────────────────────────────────────────────────────

    def _lab_changed(self, state: EngineState) -> None:
        if state is EngineState.ABSENT:
            self._emit_all()

    def _follow_experiment(self) -> None:
        """Show the lab's engine as soon as it is running."""
        if self.experiment.state is OomState.WAITING:
            self._engine = LAB
            self._emit_all()

    @property
    def _memory(self) -> EngineMemory:
        if self.chosen.is_modelled:
            return self._modelled
        return self._lab if self.engine == LAB else self._main

    @property
    def _held(self) -> LabResult | None:
        latest = self._result.latest
        if latest is None:
            return None
        if self._studio.board.identity_of(latest.request.device) != self.chosen.identity:
            return None
        if self.chosen.is_modelled:
            return latest if self._result.is_fresh else None
        return latest if self.engine == LAB and not self._lab.is_there else None

    def _now(self) -> float:
        return time.monotonic() - self._began_s


def predict_emptying(read: MemoryRead) -> str:
    """Return a sentence on what empty_cache can free now; empty without PyTorch's numbers."""
    if read.reserved_bytes is None or read.allocated_bytes is None:
        return ""
    holes = read.reserved_bytes - read.allocated_bytes
    if holes <= 0:
        return "empty_cache has nothing to free: no reserved memory is empty."
    freed = read.releasable_bytes
    if freed is None:
        return f"{format_bytes(holes)} of reserved memory is empty."
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

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._sensors: Sensors | None = None
        self._reply: Reply | None = None
        self._device: Device | None = None
        self._awaited_readings = 0
        self.result = ""

    @property
    def is_going_on(self) -> bool:
        """Whether the engine has yet to answer."""
        return self._reply is not None

    def run(
        self, session: EngineSession, address: str, device: Device | None, sensors: Sensors
    ) -> None:
        """Give PyTorch's free segments on a card back to the driver.

        Args:
            session: the engine of the allocator.
            address: the card's address.
            device: the card as NVML reports it; None for a simulated card.
            sensors: those of the card's PC.
        """
        if self._reply is not None:
            return
        self._reply, self._device = session.submit(EmptyCache(device=address)), device
        self._sensors = sensors
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

    def look(self) -> None:
        """Add the card's use from a new reading of NVML, which nvidia-smi shows as well."""
        if not self._awaited_readings or self._device is None or self._sensors is None:
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
