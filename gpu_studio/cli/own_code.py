"""The user's own code in the terminal: whether it may run, and what it prints."""

from __future__ import annotations

import sys
from pathlib import Path

from gpu_studio.cli.answers import CommandEngine, Printer
from gpu_studio.cli.command import WrongUseError
from gpu_studio.cli.data_folder import data_folder
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import note
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


def opened_code(work: CommandEngine, code: OwnCode) -> OwnCodeOpened:
    """Return what there is to choose for a code; it runs once.

    Raises:
        StudioError: it cannot be run, or it failed; the sentence names the line.
    """
    work.progress.show(f"Running {code.name} once on the CPU …")
    printer = _Opening()
    work.run([OpenOwnCode(code=code)], printer)
    match printer.last:
        case OwnCodeOpened() as opened:
            note(f"One run on the CPU took {format_duration(opened.call_s)}.")
            return opened
        case RequestFailed(failure=failure):
            raise StudioError(failure.kind, f"{code.name}: {failure.message}")
        case EngineEnded(exit_code=exit_code) if not work.interrupt.is_asked:
            raise StudioError(FailureKind.OWN_CODE, f"{code.name}: {describe_exit(exit_code)}")
    raise KeyboardInterrupt


class _Opening(Printer):
    """The first run of a code: what it prints, and what became of it."""

    last: Event | None = None

    def show(self, event: Event) -> None:
        show_printed(event)

    def as_json(self, event: Event) -> Event | None:
        return event if isinstance(event, OwnCodePrinted) else None

    def complaint(self, event: Event) -> str:
        return ""

    def end(self, last: Event) -> None:
        self.last = last


def show_printed(event: Event) -> None:
    """Show what the code printed, beside the results."""
    if isinstance(event, OwnCodePrinted):
        for line in event.text.rstrip("\n").split("\n"):
            note(f"  │ {plain_text(line)}")
