"""``gpu-studio run``: start a program on one card, and say whether it uses it."""

from __future__ import annotations

import argparse
import signal
import subprocess
import threading
import time
from pathlib import Path

import msgspec

from gpu_studio.cli.command import DONE, Command, Option, WrongUseError
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import note, print_line
from gpu_studio.cli.sensors import SensorWatch
from gpu_studio.core.devices.devices import Inventory, Reading
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.switcher.program_start import (
    CHOOSING,
    StartTarget,
    VulkanDevice,
    drawing_variables,
    shell_lines,
    start_variables,
    target_named,
    targets,
)
from gpu_studio.core.switcher.start_watch import StartWatch
from gpu_studio.hardware.client import SensorReader
from gpu_studio.process.child_call import ChildCall
from gpu_studio.process.started_program import StartFailedError, shell_status, start_program

_VULKAN = "gpu_studio.hardware.vulkan"
_LONGEST_VULKAN_S, _MOST_BYTES = 10.0, 1 << 20
_LOOK_EVERY_S = 1.0


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Start the program and wait for it; return its exit status."""
    command = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not command:
        message = "Name the program to start after “--”: run --on-card 0 -- ollama serve"
        raise WrongUseError(message)
    if TARGET.pc is not None:
        message = "A program is started on this PC only: run the command there."
        raise WrongUseError(message)
    with SensorWatch(log_path) as sensors:
        inventory = sensors.inventory()
    target, variables = _chosen(options.on_card, inventory)
    if options.print:
        for shell, line in shell_lines(variables, command).items():
            print_line(f"{shell}:")
            print_line(f"    {line}")
        return DONE
    set_words = " ".join(f"{name}={value}" for name, value in variables.items())
    note(f"Starting on the {target.title}: {set_words}")
    return _follow(command, variables, target, inventory, log_path)


def _chosen(word: str, inventory: Inventory) -> tuple[StartTarget, dict[str, str]]:
    known = _vulkan({})
    try:
        target = target_named(word, targets(inventory.cards, known or ()))
    except ValueError as error:
        raise WrongUseError(str(error)) from None
    drawing = drawing_variables(target, inventory.cards)
    order = _vulkan(drawing) if known is not None and drawing else known
    return target, start_variables(target, inventory.cards, order)


def _vulkan(variables: dict[str, str]) -> list[VulkanDevice] | None:
    """Return what Vulkan lists with these variables; None if its drivers do not answer."""
    found = ChildCall(_VULKAN).run(
        msgspec.json.encode(variables), longest_s=_LONGEST_VULKAN_S, most_bytes=_MOST_BYTES
    )
    if found.exit_code != 0:
        return None
    return msgspec.json.decode(found.content, type=list[VulkanDevice])


def _follow(
    command: list[str],
    variables: dict[str, str],
    target: StartTarget,
    inventory: Inventory,
    log_path: Path,
) -> int:
    """Start it, and wait until it ends: what ends this command in a terminal reaches it too."""
    kept = [(one, signal.getsignal(one)) for one in _passed_on()]
    try:
        # Ctrl+C goes to both: the program decides. An ignored signal would stay so in it.
        signal.signal(signal.SIGINT, lambda *_: None)
        child = start_program(command, variables, CHOOSING)
        for one, _ in kept[1:]:
            signal.signal(one, lambda number, _frame: child.send_signal(number))
        watching = threading.Thread(
            target=_watch, args=(child, target, inventory, log_path), daemon=True
        )
        watching.start()
        return shell_status(child.wait())
    except StartFailedError as error:
        raise StudioError(FailureKind.INTERNAL, str(error)) from error
    finally:
        for one, handler in kept:
            signal.signal(one, handler)


def _passed_on() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _watch(
    child: subprocess.Popen[bytes], target: StartTarget, inventory: Inventory, log_path: Path
) -> None:
    """Say once whether the program uses the card: as soon as it does, or after half a minute."""
    began_s = time.monotonic()
    watch = StartWatch(target, child.pid, inventory.cards, is_wsl=inventory.is_wsl)
    reader = SensorReader(period_s=_LOOK_EVERY_S, log_path=log_path)
    try:
        for event in reader.readings():
            if child.poll() is not None:
                return
            if isinstance(event, Reading):
                watch.look(event, time.monotonic() - began_s)
                if watch.is_settled:
                    note(watch.notice.sentence)
                    return
    finally:
        reader.close()


COMMAND = Command(
    about=(
        "Start a program so that it uses one card and no other, and say whether it does. Its exit "
        "status is this command's."
    ),
    run=_run,
    options=(
        Option("--on-card", "a number, a UUID or “cpu”; a wrong one lists them", metavar="CARD",
               required=True),
        Option("--print", "only print the line for cmd, PowerShell and sh", action="store_true"),
        Option("program", "a program, a .bat or a shortcut, and its arguments",
               nargs=argparse.REMAINDER, metavar="-- COMMAND"),
    ),
    json="",
)  # fmt: skip
