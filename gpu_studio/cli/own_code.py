"""The user's own code in the terminal: whether it may run, and what it prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from gpu_studio.cli.answers import CommandEngine
from gpu_studio.cli.command import WrongUseError
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import note, print_event
from gpu_studio.core.benchmark.own_code import AllowedCode, question, read_own_code
from gpu_studio.core.engine import describe_exit
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.own_code_messages import (
    OpenOwnCode,
    OwnCodeOpened,
    OwnCodePrinted,
)
from gpu_studio.core.messages.run_messages import OwnCode
from gpu_studio.core.texts import plain_text
from gpu_studio.core.units import format_duration

_YES = ("y", "yes")


def allowed_code(path: Path, *, is_allowed: bool) -> OwnCode:
    """Return the code of a file that may run; ask the user once per content.

    Args:
        path: the file.
        is_allowed: whether ``--yes`` was typed.

    Raises:
        WrongUseError: it may not run, or it is for another PC.
        StudioError: it cannot be read.
    """
    if TARGET.pc is not None:
        raise WrongUseError("Your own code runs on this PC only: leave out --pc.")
    code = read_own_code(path)
    allowed = AllowedCode(data_folder())
    if is_allowed:
        allowed.add(code)
    if allowed.has(code):
        return code
    if not sys.stdin.isatty():
        raise WrongUseError(
            f"{plain_text(question(code))} Nobody can be asked here: add --yes to run it."
        )
    note(question(code))
    sys.stderr.write("Run it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in _YES:
        raise WrongUseError("Nothing was run.")
    allowed.add(code)
    return code


def opened_code(work: CommandEngine, code: OwnCode, *, as_json: bool) -> OwnCodeOpened:
    """Return what there is to choose for a code; it runs once.

    Raises:
        StudioError: it cannot be run, or it failed; the sentence names the line.
    """
    work.progress.show(f"Running {code.name} once on the CPU …")
    for event in work.answers(OpenOwnCode(code=code)):
        show_printed(event, as_json=as_json, before=work.progress.clear)
        match event:
            case OwnCodeOpened():
                work.progress.clear()
                note(f"One run on the CPU took {format_duration(event.call_s)}.")
                return event
            case RequestFailed():
                raise StudioError(event.failure.kind, f"{code.name}: {event.failure.message}")
            case EngineEnded():
                reason = "" if work.interrupt.is_asked else describe_exit(event.exit_code)
                if not reason:
                    raise KeyboardInterrupt
                raise StudioError(FailureKind.OWN_CODE, f"{code.name}: {reason}")
    raise KeyboardInterrupt


def show_printed(event: Event, *, as_json: bool, before: Callable[[], object]) -> None:
    """Show what the code printed, beside the results."""
    if isinstance(event, OwnCodePrinted):
        before()
        if as_json:
            print_event(event)
        else:
            for line in event.text.rstrip("\n").split("\n"):
                note(f"  │ {plain_text(line)}")
