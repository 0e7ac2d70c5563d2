"""``gpu-studio completion``: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import shtab

from gpu_studio.cli.command import DONE, Command, Option

_FILES = {"FILE": shtab.FILE, "MODEL|FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY}


def _run(options: argparse.Namespace, _log_path: Path) -> int:
    """Print the script; return the exit status."""
    from gpu_studio.cli.main import COMMANDS, build_parser

    parser = build_parser([*COMMANDS], program="gpu-studio")
    _mark_files(parser)
    sys.stdout.write(shtab.complete(parser, shell=options.shell))
    return DONE


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Tell shtab which arguments are files, in a command and all of its parts."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _mark_files(part)
        elif action.metavar in _FILES:
            action.complete = _FILES[action.metavar]  # type: ignore[attr-defined]


_SHELL = Option(
    "shell", ", ".join(shtab.SUPPORTED_SHELLS), choices=shtab.SUPPORTED_SHELLS, metavar="SHELL"
)
COMMAND = Command(
    about="Print a script that completes the commands, options and files of gpu-studio when you "
    'press Tab. For bash, add eval "$(gpu-studio completion bash)" to ~/.bashrc; for zsh, write '
    "the output to a file _gpu-studio in $fpath; for fish, to "
    "~/.config/fish/completions/gpu-studio.fish; for PowerShell, add gpu-studio completion "
    "powershell | Out-String | Invoke-Expression to $PROFILE.",
    run=_run,
    options=(_SHELL,),
    json="",
)
