"""An engine's answers and the PC's sensors for a terminal; Ctrl-C works while waiting for either.

Each is iterated on its own thread. Otherwise a driver call or a pipe that never answers would block
the terminal.
"""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from gpu_studio.builds.shelf import BuildShelf, own_shelf
from gpu_studio.cli.command import DONE, DOUBTFUL, FAILED, INTERRUPTED
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import Progress, complain, note, print_event
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.device_name import CPU, address_at
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.engine import Engine, EngineEnvironment, describe_exit
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.line_trouble import LineProblem, LineTrouble
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    EngineEnded,
    RequestFailed,
)
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.messages.pitfall_messages import PitfallFailed
from gpu_studio.core.messages.run_messages import RunInTurns
from gpu_studio.core.packages_folder import has_own_torch
from gpu_studio.core.pause import EVERY_S, PauseWatch
from gpu_studio.core.program_form import typed
from gpu_studio.engine.client import LineEngine, ProcessEngine, QuickEngine
from gpu_studio.hardware.client import LineSensors, SensorReader

_LOOK_S = 0.1
_STOP_PATIENCE_S = 1.0
_SENSORS_PATIENCE_S = 15.0
_LINE_PATIENCE_S = 45.0  # a connection, then the start of two programs on what may be an old PC
# PyTorch on a slow disk takes half a minute to load.
_LOAD_PATIENCE_S = 90.0
# After that, CUDA starts within seconds; a hanging driver never answers.
_DRIVER_PATIENCE_S = 30.0
_START_PATIENCE_S = _LOAD_PATIENCE_S + _DRIVER_PATIENCE_S
_SLOW_START_S = 15.0
_T = TypeVar("_T")
GRAPHICS_DRIVER = "A graphics driver"
"""Who does not answer, if an engine without PyTorch does not; see `describe`."""


class HeldEngineError(StudioError):
    """PyTorch did not answer because the driver hangs."""


class NoEngineError(StudioError):
    """The program installs PyTorch itself, and has none that this Python can load."""


class Interrupt:
    """Whether Ctrl-C was pressed; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.is_asked = False

    @contextmanager
    def recorded(self) -> Iterator[Interrupt]:
        """Record Ctrl-C in this object instead of raising KeyboardInterrupt."""
        before = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_interrupt(self, *_: object) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True


class Patience(NamedTuple):
    """How long a command waits for an engine before it ends it.

    Attributes:
        stop_s: seconds for the last event after a stop; None is the usual time.
        silence_s: returns the longest time between two events, in seconds.
        farewell_s: seconds for an ended engine to be gone; a hung driver keeps it alive.
        on_stop: called before the engine is stopped.
        on_silence: called before an engine is ended that was silent for too long.
        slow_s: the time without an event after which `on_slow` is called, once.
        on_slow: says that the command still waits.
        on_pause: called with the seconds of a pause (the PC slept, a signal held the engine up)
            before an engine is ended whose request it spoiled; None lets the engine go on.
    """

    stop_s: float | None = None
    silence_s: Callable[[], float] = lambda: math.inf
    farewell_s: float = math.inf
    on_stop: Callable[[], object] = lambda: None
    on_silence: Callable[[], object] = lambda: None
    slow_s: float = math.inf
    on_slow: Callable[[], object] = lambda: None
    on_pause: Callable[[float], object] | None = None


def answers(
    engine: Engine, request: Request, interrupt: Interrupt, patience: Patience | None = None
) -> Iterator[Event]:
    """Yield the events of a request; after Ctrl-C stops it, its last event still arrives.

    An engine that is silent for too long, or deaf to the stop, is ended. A pause of this program
    is no silence of the engine.
    """
    patience = patience or Patience()
    stop_s = _STOP_PATIENCE_S if patience.stop_s is None else patience.stop_s
    stream = Stream(engine.run(request))
    watch, now_s, looked_s = PauseWatch(), 0.0, time.monotonic()
    last_event_s, stopped_s, ended_s = now_s, None, None
    is_slow = False
    while not stream.has_ended:
        event = stream.wait(_LOOK_S)
        before_s, looked_s = looked_s, time.monotonic()
        now_s += min(looked_s - before_s, EVERY_S)  # a pause is no waiting
        if (pause_s := watch.tick()) and patience.on_pause is not None and ended_s is None:
            patience.on_pause(pause_s)
            engine.abandon()
            ended_s = now_s
        if event is not None:
            last_event_s = now_s
            yield event
            watch.tick()  # a slow disk of the command is no pause
        elif ended_s is not None and now_s - ended_s > patience.farewell_s:
            yield EngineEnded(exit_code=None, stopped=True)
            return
        elif ended_s is None and now_s - last_event_s > patience.silence_s():
            if engine.is_held and patience.on_pause is not None:
                patience.on_pause(patience.silence_s())
            else:
                patience.on_silence()
            engine.abandon()
            ended_s = now_s
        if not is_slow and now_s - last_event_s > patience.slow_s:
            is_slow = True
            patience.on_slow()
        if not interrupt.is_asked:
            continue
        if stopped_s is None:
            patience.on_stop()
            engine.stop()
            stopped_s = now_s
        elif ended_s is None and now_s - stopped_s > stop_s:
            engine.abandon()
            ended_s = now_s


def describe(
    engine: Engine,
    interrupt: Interrupt,
    question: DescribeEngine | None = None,
    *,
    has_loaded: bool = False,
    who: str = "",
) -> EngineDescribed:
    """Return the engine's description of itself.

    Args:
        engine: the engine to ask.
        interrupt: records Ctrl-C.
        question: the request to send; None allows waking sleeping cards.
        has_loaded: whether PyTorch has answered already, so that only the driver can block it.
        who: the subject of the sentences; empty for PyTorch.

    Raises:
        HeldEngineError: the engine did not answer in time.
        StudioError: the engine failed or ended.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    is_held = threading.Event()
    patience_s = _DRIVER_PATIENCE_S if has_loaded else _START_PATIENCE_S
    patience = Patience(
        silence_s=lambda: patience_s,
        on_silence=is_held.set,
        slow_s=_SLOW_START_S,
        on_slow=lambda: note(_slow_words(who or _who(), patience_s)),
    )
    exit_code: int | None = None
    for event in answers(engine, question or DescribeEngine(), interrupt, patience):
        if interrupt.is_asked:
            raise KeyboardInterrupt
        match event:
            case EngineDescribed():
                return event
            case RequestFailed():
                raise StudioError(event.failure.kind, event.failure.message)
            case EngineEnded():
                exit_code = event.exit_code
    if is_held.is_set():
        reason = ": the driver blocks it." if has_loaded else f". {_WHY_SLOW} Restart the PC."
        message = f"{who or _who()} did not answer within {patience_s:.0f} s{reason}"
        raise HeldEngineError(FailureKind.ENGINE_ENDED, message)
    raise StudioError(FailureKind.ENGINE_ENDED, describe_exit(exit_code))


_WHY_SLOW = "A hanging graphics driver or a very slow disk can be the reason."


def _who() -> str:
    return "PyTorch" if TARGET.pc is None else f"PyTorch on {TARGET.pc.name}"


def _slow_words(who: str, patience_s: float) -> str:
    return f"{who} has not answered yet. This command waits up to {patience_s:.0f} s."


class CommandEngine(NamedTuple):
    """An engine for one command, with Ctrl-C and the progress line."""

    engine: Engine
    interrupt: Interrupt
    progress: Progress

    def answers(self, request: Request, patience: Patience | None = None) -> Iterator[Event]:
        """See `answers`."""
        return answers(self.engine, request, self.interrupt, patience)

    def made(self, runs: Sequence[Run], *, as_json: bool) -> Iterator[tuple[Event, list[Run]]]:
        """Make a run, or several in turns; yield each event with the runs that it changed.

        With JSON, each event that changes a run is printed.
        """
        requests = tuple(run.request for run in runs)
        request = requests[0] if len(requests) == 1 else RunInTurns(runs=requests)
        for event in self.answers(request):
            changed = [run for run in runs if run.apply(event)]
            if as_json and changed:
                print_event(event)
            yield event, changed
        self.progress.clear()

    def printed_answers(self, request: Request, *, as_json: bool) -> Iterator[Event]:
        """Yield the events of a request; print each as JSON if asked to, failures as a note."""
        for event in self.answers(request):
            self.progress.clear()
            if as_json:
                print_event(event)
            match event:
                case RequestFailed() | PitfallFailed():
                    complain(f"gpu-studio: {event.failure.message}")
                case EngineEnded():
                    complain(f"gpu-studio: {describe_exit(event.exit_code)}")
            yield event

    def exit_status(self, *, is_done: bool, in_doubt: bool = False) -> int:
        """Return the exit status of the command, which has ended."""
        if self.interrupt.is_asked:
            return INTERRUPTED
        if not is_done:
            return FAILED
        return DOUBTFUL if in_doubt else DONE


@contextmanager
def at_work(engine: Engine) -> Iterator[CommandEngine]:
    """Use an engine for one command: Ctrl-C is recorded, and leaving the context closes it."""
    try:
        with Interrupt().recorded() as interrupt, Progress() as progress:
            yield CommandEngine(engine, interrupt, progress)
    finally:
        engine.close()


def new_engine(log_path: Path, environment: EngineEnvironment | None = None) -> Engine:
    """Return an engine for one command.

    Raises:
        NoEngineError: there is no PyTorch for it.
    """
    if TARGET.pc is not None:
        return LineEngine(TARGET.pc, environment)
    shelf = own_shelf(data_folder)
    if shelf is not None and not shelf.used():
        raise NoEngineError(FailureKind.ENGINE_ENDED, _why_no_engine(shelf))
    return ProcessEngine(environment or EngineEnvironment(), log_path=log_path)


def has_engine() -> bool:
    """Return whether there is a PyTorch for an engine; that of another PC is not known yet."""
    if TARGET.pc is not None:
        return True
    shelf = own_shelf(data_folder)
    return has_own_torch() if shelf is None else bool(shelf.used())


def _why_no_engine(shelf: BuildShelf) -> str:
    command = typed("gpu-studio engine install")
    for record in shelf.records():
        if record.is_ready:
            return f"{shelf.outdated(record)} Type “{command}” to make it again."
    return f"PyTorch is not installed yet. Type “{command}” to install it."


@contextmanager
def started_engine(log_path: Path) -> Iterator[tuple[CommandEngine, EngineDescribed]]:
    """Start an engine for one command, and let it describe itself; see `describe`."""
    with at_work(new_engine(log_path)) as work:
        work.progress.show("Starting PyTorch …")
        described = describe(work.engine, work.interrupt)
        work.progress.clear()
        yield work, described


@contextmanager
def started_quick_engine(log_path: Path) -> Iterator[tuple[CommandEngine, EngineDescribed]]:
    """Start an engine without PyTorch; with the CPU alone where a graphics driver fails."""
    for uses_adapters in (True, False):
        with at_work(QuickEngine(log_path=log_path, uses_adapters=uses_adapters)) as work:
            work.progress.show("Asking the graphics drivers …")
            try:
                described = describe(
                    work.engine, work.interrupt, has_loaded=True, who=GRAPHICS_DRIVER
                )
            except StudioError as error:
                work.progress.clear()
                if not uses_adapters:
                    raise
                note(str(error))
                continue
            work.progress.clear()
            yield work, described
            return


def addresses(described: EngineDescribed) -> list[str]:
    """Return the addresses of the devices that an engine can use."""
    adapters = [adapter.address for adapter in described.adapters]
    return [address_at(described.pc, CPU), *described.card_addresses, *adapters]


def check_device(device: str, described: EngineDescribed) -> None:
    """Raise `StudioError` if an engine cannot use this device."""
    available = addresses(described)
    if device not in available:
        verb = "is" if len(available) == 1 else "are"
        reason = f" {described.cuda_reason}" if described.cuda_reason else ""
        message = f"There is no {device[:20]} here; there {verb} {', '.join(available)}.{reason}"
        raise StudioError(FailureKind.NO_SUCH_DEVICE, message)


def describe_beside(
    inventory: Inventory, engine: Engine, interrupt: Interrupt, *, wakes_cards: bool = True
) -> EngineDescribed:
    """Return the engine's description of itself, unless the driver would block it; see `describe`.

    Loading PyTorch may take long, starting CUDA may not. So the first request is one that needs
    PyTorch but not the driver.

    Args:
        inventory: the devices that the sensor reader found.
        engine: the engine to ask.
        interrupt: records Ctrl-C.
        wakes_cards: whether to ask CUDA even if all cards sleep.

    Raises:
        HeldEngineError: the driver does not answer, or it blocked the engine.
        StudioError: the engine failed or ended.
    """
    if inventory.driver.is_silent:
        message = "PyTorch was not started: the driver does not answer and would block it."
        raise HeldEngineError(FailureKind.ENGINE_ENDED, message)
    is_held = threading.Event()
    patience = Patience(silence_s=lambda: _LOAD_PATIENCE_S, on_silence=is_held.set)
    for event in answers(engine, ReadMemory(device=CPU), interrupt, patience):
        if interrupt.is_asked:
            raise KeyboardInterrupt
        if isinstance(event, EngineEnded) and is_held.is_set():
            message = f"PyTorch did not load within {_LOAD_PATIENCE_S:.0f} s."
            raise StudioError(FailureKind.ENGINE_ENDED, message)
    question = DescribeEngine(wakes_cards=wakes_cards)
    return describe(engine, interrupt, question, has_loaded=True)


class SensorWatch:
    """This PC's sensors in the background; a context manager.

    Args:
        log_path: the file for the reader's standard error.
        period_s: the time between two readings. One reading 0.2 s after the inventory is enough for
            the CPU's utilization.
    """

    def __init__(self, log_path: Path, period_s: float = 0.2) -> None:
        if TARGET.pc is None:
            self._reader = SensorReader(period_s=period_s, log_path=log_path)
        else:
            self._reader = LineSensors(TARGET.pc, period_s=period_s)
        self._log_path = log_path
        self._stream = Stream(self._reader.readings())
        self._inventory: Inventory | None = None
        self._readings: list[Reading] = []

    def __enter__(self) -> SensorWatch:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def inventory(self) -> Inventory:
        """Return this PC's devices with one reading of their sensors.

        Raises:
            StudioError: the driver does not answer, or the sensor reader ended.
        """
        patience_s = _SENSORS_PATIENCE_S if TARGET.pc is None else _LINE_PATIENCE_S
        deadline_s = time.monotonic() + patience_s
        while not self._stream.has_ended and time.monotonic() < deadline_s and not self._readings:
            self._on_event(self._stream.wait(_LOOK_S))
        if self._inventory is None:
            raise StudioError(FailureKind.INTERNAL, self._why_none())
        if not self._readings:
            return self._inventory
        return _with_reading(self._inventory, self._readings[-1])

    def followed(self, interrupt: Interrupt) -> Iterator[Inventory]:
        """Yield this PC's devices with each further reading, until Ctrl-C or the reader's end."""
        inventory = self.inventory()
        while not self._stream.has_ended and not interrupt.is_asked:
            event = self._stream.wait(_LOOK_S)
            if isinstance(event, Inventory):
                inventory = event
            elif event is not None:
                yield _with_reading(inventory, event)

    def readings(self) -> list[Reading]:
        """Return every reading since the start, oldest first."""
        while not self._stream.has_ended and (event := self._stream.wait(0.0)) is not None:
            self._on_event(event)
        return list(self._readings)

    def _on_event(self, event: Inventory | Reading | None) -> None:
        if isinstance(event, Inventory):
            self._inventory = event
        elif isinstance(event, Reading) and self._inventory is not None:
            self._readings.append(event)

    def _why_none(self) -> str:
        if TARGET.pc is not None:
            return LineTrouble(LineProblem.NO_ANSWER, TARGET.pc).words
        if self._stream.has_ended:
            return (
                "The sensor reader ended before its first reading; the log says why: "
                f"{self._log_path}"
            )
        return (
            "The sensor reader does not answer. If this PC has an NVIDIA card, its driver may "
            "hang: restart the PC, then try again."
        )


def read_inventory(log_path: Path) -> Inventory:
    """Return this PC's devices with one reading of their sensors.

    Raises:
        StudioError: the driver does not answer, or the sensor reader ended.
    """
    with SensorWatch(log_path) as watch:
        return watch.inventory()


def _with_reading(inventory: Inventory, reading: Reading) -> Inventory:
    devices = [msgspec.structs.replace(inventory.cpu, telemetry=reading.cpu)]
    for card in inventory.cards:
        now = reading.card(card)
        if now is None or now.error is not None:
            devices.append(card)
        else:
            devices.append(
                msgspec.structs.replace(card, telemetry=now.telemetry, processes=now.processes)
            )
    return msgspec.structs.replace(inventory, devices=tuple(devices))


class Stream(Generic[_T]):
    """An iterable that another thread iterates; `wait` returns its next value."""

    def __init__(self, source: Iterable[_T]) -> None:
        self._arrived: queue.SimpleQueue[tuple[bool, _T | None]] = queue.SimpleQueue()
        self.has_ended = False
        threading.Thread(target=self._pump, args=(source,), daemon=True).start()

    def wait(self, timeout_s: float) -> _T | None:
        """Return the next value; None if none arrived in time or `has_ended`."""
        try:
            is_value, value = self._arrived.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self.has_ended = not is_value
        return value

    def _pump(self, source: Iterable[_T]) -> None:
        try:
            for value in source:
                self._arrived.put((True, value))
        finally:
            self._arrived.put((False, None))
