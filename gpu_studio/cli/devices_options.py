"""The options of ``gpu-studio devices``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.parser import Commands


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    devices = commands.add_parser(
        "devices",
        help="what is in this PC, and can PyTorch use it?",
        description="What is in this PC, and can PyTorch use it?",
        allow_abbrev=False,
    )
    devices.add_argument("--json", action="store_true", help="one JSON object on standard output")
    devices.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.devices import show_devices

    return show_devices(log_path, as_json=options.json)
