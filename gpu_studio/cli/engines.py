"""The engine of a command: which one, how it starts, and what it says of itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_studio.builds.shelf import BuildShelf, own_shelf
from gpu_studio.cli.answers import CommandEngine, Patience, at_work
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import note
from gpu_studio.core import limits
from gpu_studio.core.device_name import CPU, address_at
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.engine import Engine, EngineEnvironment
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
)
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.packages_folder import has_own_torch
from gpu_studio.core.program_form import typed
from gpu_studio.engine.client import ProcessEngine, QuickEngine
from gpu_studio.line.clients import LineEngine

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
