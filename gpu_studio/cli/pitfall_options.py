"""The options of ``gpu-studio pitfall``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.parser import device_address
from gpu_studio.cli.status import WrongUseError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.parser import Commands


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    pitfall = commands.add_parser(
        "pitfall",
        help="fall into a common mistake on purpose, and see the fix",
        description="Fall into a common mistake on purpose: the real error or the real slow "
        "number, why, and the number with the fix.",
        allow_abbrev=False,
    )
    pitfall.add_argument("name", nargs="?", metavar="NAME", help="which one; see --list")
    pitfall.add_argument(
        "--device",
        metavar="D",
        type=device_address,
        help="cpu, or a card (default: the first that this PyTorch can use, else cpu)",
    )
    pitfall.add_argument("--json", action="store_true", help="one event a line on standard output")
    pitfall.add_argument("--list", action="store_true", help="list the pitfalls and end")
    pitfall.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.pitfall import list_pitfalls, run_pitfall

    if options.list:
        return list_pitfalls(log_path, as_json=options.json)
    if not options.name:
        raise WrongUseError("Name a pitfall; “gpu-studio pitfall --list” shows those there are.")
    return run_pitfall(options.name, options.device, log_path, as_json=options.json)
