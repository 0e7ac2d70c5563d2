"""``gpu-studio copy``: send this program to another PC that has none, and install PyTorch there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.command import DONE, FAILED, Command, WrongUseError
from gpu_studio.cli.screen import Progress, note, print_line
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.other_pc import pc_from_text
from gpu_studio.core.program_copy import ProgramCopy, command_to_run_there
from gpu_studio.core.program_form import typed

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def _run(options: argparse.Namespace, _log_path: Path) -> int:
    """Say what would be sent, or send it; return the exit status."""
    from gpu_studio.hardware.copy_there import copy_there, look_there

    try:
        pc = pc_from_text(options.host)
    except ValueError as error:
        raise WrongUseError(str(error)) from error
    offer = look_there(pc, ProgramCopy())
    if offer.trouble:
        raise _refused(offer.trouble)
    if not options.yes:
        print_line(offer.sentence)
        again = typed(f"gpu-studio copy {options.host} --yes")
        print_line(f"Nothing was sent. “{again}” sends it.")
        return DONE
    last = None
    with Progress() as line:
        for last in copy_there(offer):
            line.show(last.sentence)
    assert last is not None
    if not last.is_ready:
        note(last.sentence)
        return FAILED
    print_line(last.sentence)
    return DONE


def _refused(trouble: str) -> StudioError:
    return StudioError(
        FailureKind.LINE_LOST, f"{trouble} Or type this there: {command_to_run_there()}"
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host", metavar="[NAME=]HOST", help="the PC, as after ssh")
    parser.add_argument("--yes", action="store_true", help="send it; without, only say what is")


COMMAND = Command(
    about="Copy this program over ssh to a PC with Linux that has no GPU Studio, into "
    "~/gpu-studio, and install PyTorch there. Says first how much is sent.",
    run=_run,
    add_arguments=_add_arguments,
    json="",
)
