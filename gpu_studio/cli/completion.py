"""``gpu-studio completion``, from the same declarations as every ``--help``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import shtab

from gpu_studio.cli.command import Option, command

_FILES = {"FILE": shtab.FILE, "MODEL|FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY}


@command(
    Option(
        "shell", ", ".join(shtab.SUPPORTED_SHELLS), choices=shtab.SUPPORTED_SHELLS, metavar="SHELL"
    ),
    json="",
)
def _complete(options: argparse.Namespace, _log_path: Path) -> None:
    """Print a script that completes the commands, options and files of gpu-studio.

    Your shell does so when you press Tab. For bash, add eval "$(gpu-studio completion bash)" to
    ~/.bashrc; for zsh, write the output to a file _gpu-studio in $fpath; for fish, to
    ~/.config/fish/completions/gpu-studio.fish; for PowerShell, add gpu-studio completion powershell
    | Out-String | Invoke-Expression to $PROFILE.
    """
    from gpu_studio.cli.main import COMMANDS, build_parser

    parser = build_parser([*COMMANDS], program="gpu-studio")
    _mark_files(parser)
    sys.stdout.write(shtab.complete(parser, shell=options.shell))


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Tell shtab which arguments are files, in a command and all of its parts."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _mark_files(part)
        elif action.metavar in _FILES:
            action.complete = _FILES[action.metavar]  # type: ignore[attr-defined]


COMMANDS = {"completion": _complete}
