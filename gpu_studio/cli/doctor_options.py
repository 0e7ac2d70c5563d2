"""The options of ``gpu-studio doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.parser import Commands

_ABOUT = """\
Says whether PyTorch can use this PC's cards, and what to do where it cannot. A real kernel is run
on each card, in a process of its own. The exit status is 0 when a card can be used, 1 when not."""


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    doctor = commands.add_parser(
        "doctor",
        help="why can PyTorch not use my card, and what next?",
        description=_ABOUT,
        allow_abbrev=False,
    )
    doctor.add_argument("--json", action="store_true", help="one JSON object on standard output")
    doctor.add_argument(
        "--no-kernel",
        action="store_true",
        help="judge by lists and versions alone: makes no CUDA context",
    )
    doctor.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.doctor import examine

    return examine(log_path, as_json=options.json, with_kernel=not options.no_kernel)
