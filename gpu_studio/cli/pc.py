"""The PC that a command uses, this one or that of ``--on``: its data folder, sensors and engine.

The command runs here in any case, with that PC's engine and sensors at the end of a line. So its
history, its recordings and whatever ``--save`` names are files of this PC, as in the window; the
same command there, over ssh, would leave them there.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gpu_studio.builds.shelf import BuildShelf, own_shelf
from gpu_studio.cli.answers import LOOK_S, CommandEngine, Interrupt, Patience, Stream, at_work
from gpu_studio.cli.command import WrongUseError
from gpu_studio.cli.output import note
from gpu_studio.core import limits
from gpu_studio.core.benchmark.recording import system_name
from gpu_studio.core.device_name import CPU, DeviceName, address_at, is_cpu
from gpu_studio.core.devices.adapters import is_adapter
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.engine import Engine, EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.other_pc import LineProblem, OtherPc, pc_from_text
from gpu_studio.core.packages_folder import has_own_torch
from gpu_studio.core.program_form import typed
from gpu_studio.core.texts import listed
from gpu_studio.engine.client import ProcessEngine, QuickEngine
from gpu_studio.hardware.client import SensorReader
from gpu_studio.line.clients import LineEngine, LineHello, LineSensors


def data_folder() -> Path:
    """Return the folder for results and engines; it may be missing."""
    import platformdirs

    return Path(platformdirs.user_data_path("gpu-studio", appauthor=False))


ON_ANOTHER_PC = frozenset(
    ("devices", "doctor", "bench", "race", "standard", "check", "memory", "place", "pitfall")
)
"""The commands that can use another PC's devices."""


class Target:
    """Where a command's engine and sensors are; a process of the terminal has one.

    Attributes:
        pc: the other PC; None for this one.
        system: its system, "Linux"; None for this one's own.
    """

    pc: OtherPc | None = None
    system: str | None = None

    @property
    def system_name(self) -> str:
        """The system of the PC, with its version if it is this one."""
        return self.system or system_name()

    def use(self, options: argparse.Namespace) -> None:
        """Use the PC of ``--on``, with its names for the devices that the options name.

        Raises:
            WrongUseError: its host is refused, or the command or an option is for this PC alone.
            StudioError: it cannot be used.
        """
        if not options.on:
            return
        if options.command not in ON_ANOTHER_PC:
            raise WrongUseError(f"--on is for {', '.join(sorted(ON_ANOTHER_PC))}.")
        try:
            pc = pc_from_text(options.on)
        except ValueError as error:
            raise WrongUseError(str(error)) from error
        if getattr(options, "weights", None):  # they are read where the work is
            raise WrongUseError("--weights is not for another PC: files stay where they are.")
        found = LineHello(pc).answer()
        if found.problem is not None:
            if found.detail:
                note(found.detail)
            raise StudioError(FailureKind.LINE_LOST, found.problem.notice(pc).words)
        assert found.greeting is not None
        self.pc, self.system = found.pc, found.greeting.platform
        for name in ("device", "then"):
            if hasattr(options, name):
                setattr(options, name, _at(self.pc.name, getattr(options, name)))


TARGET = Target()


def _at(pc: str, devices: Any) -> Any:
    """Return the devices of an option with the PC's name in front."""
    if isinstance(devices, (list, tuple)):
        return type(devices)(_at(pc, one) for one in devices)
    if not isinstance(devices, str) or is_modelled(devices):
        return devices
    try:
        name = DeviceName.parse(devices)
    except ValueError:
        return devices
    return devices if name.pc else address_at(pc, devices)


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
        is_here = TARGET.pc is None
        now = limits.current
        deadline_s = time.monotonic() + (now.terminal_sensors_s if is_here else now.terminal_line_s)
        while not self._stream.has_ended and time.monotonic() < deadline_s and not self._readings:
            self._on_event(self._stream.wait(LOOK_S))
        if self._inventory is None:
            raise StudioError(FailureKind.INTERNAL, self._why_none())
        if not self._readings:
            return self._inventory
        return _with_reading(self._inventory, self._readings[-1])

    def followed(self, interrupt: Interrupt) -> Iterator[Inventory]:
        """Yield this PC's devices with each further reading, until Ctrl-C or the reader's end."""
        inventory = self.inventory()
        while not self._stream.has_ended and not interrupt.is_asked:
            event = self._stream.wait(LOOK_S)
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
            return LineProblem.NO_ANSWER.notice(TARGET.pc).words
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


GRAPHICS_DRIVER = "A graphics driver"
"""Who does not answer, if an engine without PyTorch does not; see `describe`."""


class HeldEngineError(StudioError):
    """PyTorch did not answer because the driver hangs."""


class NoEngineError(StudioError):
    """The program installs PyTorch itself, and has none that this Python can load."""


def describe(
    work: CommandEngine,
    question: DescribeEngine | None = None,
    *,
    has_loaded: bool = False,
    who: str = "",
) -> EngineDescribed:
    """Return the engine's description of itself.

    Args:
        work: the engine to ask.
        question: the request to send; None allows waking sleeping cards.
        has_loaded: whether PyTorch has answered already, so that only the driver can block it.
        who: the subject of the sentences; empty for PyTorch.

    Raises:
        HeldEngineError: the engine did not answer in time.
        StudioError: the engine failed or ended.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    is_held = threading.Event()
    patience_s = limits.current.terminal_driver_s
    if not has_loaded:
        patience_s += limits.current.terminal_load_s
    patience = Patience(
        silence_s=lambda: patience_s,
        on_silence=is_held.set,
        slow_s=limits.current.terminal_slow_s,
        on_slow=lambda: note(_slow_words(who or _who(), patience_s)),
    )
    try:
        return work.answer(question or DescribeEngine(), EngineDescribed, patience)
    except StudioError as error:
        if not is_held.is_set():
            raise
        reason = ": the driver blocks it." if has_loaded else f". {_WHY_SLOW} Restart the PC."
        message = f"{who or _who()} did not answer within {patience_s:.0f} s{reason}"
        raise HeldEngineError(FailureKind.ENGINE_ENDED, message) from error


_WHY_SLOW = "A hanging graphics driver or a very slow disk can be the reason."


def _who() -> str:
    return "PyTorch" if TARGET.pc is None else f"PyTorch on {TARGET.pc.name}"


def _slow_words(who: str, patience_s: float) -> str:
    return f"{who} has not answered yet. This command waits up to {patience_s:.0f} s."


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


def is_without_torch(devices: Sequence[str] | None) -> bool:
    """Return whether these devices are used without PyTorch, and say so if it is missing.

    Raises:
        WrongUseError: some need it, and others are adapters.
    """
    named = devices or ()
    adapters = [one for one in named if is_adapter(one)]
    with_torch = [one for one in named if not (is_adapter(one) or is_cpu(one))]
    if adapters and (with_torch or TARGET.pc is not None):
        others = with_torch if TARGET.pc is None else with_torch or [TARGET.pc.name]
        raise WrongUseError(
            f"{adapters[0]} is measured without PyTorch, and only on this PC: measure "
            f"{listed(others)} in a run of its own."
        )
    if adapters or with_torch or has_engine():
        return bool(adapters)
    note(
        "PyTorch is not installed, so this measures without it: with NumPy on the CPU, and with "
        "Vulkan or DirectX 12 on your cards."
    )
    return True


def engine_for(
    devices: Sequence[str] | None, log_path: Path, *, is_json: bool
) -> AbstractContextManager[tuple[CommandEngine, EngineDescribed]]:
    """Start the engine that devices need, for one command; see `is_without_torch`."""
    start = started_quick_engine if is_without_torch(devices) else started_engine
    return start(log_path, is_json=is_json)


@contextmanager
def started_engine(
    log_path: Path, *, is_json: bool = False
) -> Iterator[tuple[CommandEngine, EngineDescribed]]:
    """Start an engine for one command, and let it describe itself; see `describe`."""
    with at_work(new_engine(log_path), is_json=is_json) as work:
        work.progress.show("Starting PyTorch …")
        described = describe(work)
        work.progress.clear()
        yield work, described


@contextmanager
def started_quick_engine(
    log_path: Path, *, is_json: bool = False
) -> Iterator[tuple[CommandEngine, EngineDescribed]]:
    """Start an engine without PyTorch; with the CPU alone where a graphics driver fails."""
    for uses_adapters in (True, False):
        engine = QuickEngine(log_path=log_path, uses_adapters=uses_adapters)
        with at_work(engine, is_json=is_json) as work:
            work.progress.show("Asking the graphics drivers …")
            try:
                described = describe(work, has_loaded=True, who=GRAPHICS_DRIVER)
            except StudioError as error:
                work.progress.clear()
                if not uses_adapters:
                    raise
                note(str(error))
                continue
            work.progress.clear()
            if described.cuda_reason:  # what is missing, and what to install
                note(described.cuda_reason)
            yield work, described
            return


def addresses(described: EngineDescribed) -> list[str]:
    """Return the addresses of the devices that an engine can use."""
    adapters = [adapter.address for adapter in described.adapters]
    return [address_at(described.pc, CPU), *described.card_addresses, *adapters]


def why_no_card(described: EngineDescribed) -> str:
    """Return why no card can be used, and what says what to do about it."""
    reason = described.cuda_reason or "PyTorch cannot use any card here."
    return f"{reason} “{typed('gpu-studio doctor')}” says what to do."


def check_device(device: str, described: EngineDescribed) -> None:
    """Raise `StudioError` if an engine cannot use this device."""
    available = addresses(described)
    if device not in available:
        verb = "is" if len(available) == 1 else "are"
        reason = f" {why_no_card(described)}" if described.cuda_reason else ""
        message = f"There is no {device[:20]} here; there {verb} {', '.join(available)}.{reason}"
        raise StudioError(FailureKind.NO_SUCH_DEVICE, message)


def describe_beside(
    inventory: Inventory, work: CommandEngine, *, wakes_cards: bool = True
) -> EngineDescribed:
    """Return the engine's description of itself, unless the driver would block it; see `describe`.

    Loading PyTorch may take long, starting CUDA may not. So the first request is one that needs
    PyTorch but not the driver.

    Args:
        inventory: the devices that the sensor reader found.
        work: the engine to ask.
        wakes_cards: whether to ask CUDA even if all cards sleep.

    Raises:
        HeldEngineError: the driver does not answer, or it blocked the engine.
        StudioError: the engine failed or ended.
    """
    if inventory.driver.is_silent:
        message = "PyTorch was not started: the driver does not answer and would block it."
        raise HeldEngineError(FailureKind.ENGINE_ENDED, message)
    is_held = threading.Event()
    patience = Patience(silence_s=lambda: limits.current.terminal_load_s, on_silence=is_held.set)
    try:
        work.answer(ReadMemory(device=CPU), MemoryRead, patience)
    except StudioError as error:
        if is_held.is_set():
            message = f"PyTorch did not load within {limits.current.terminal_load_s:.0f} s."
            raise StudioError(FailureKind.ENGINE_ENDED, message) from error
    question = DescribeEngine(wakes_cards=wakes_cards)
    return describe(work, question, has_loaded=True)
