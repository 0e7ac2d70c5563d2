"""``gpu-studio manual`` and ``completion``, from the same declarations as every ``--help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import shtab

from gpu_studio.cli.command import Option, command
from gpu_studio.core.program_version import program_title

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


STATUS = {
    "0": "done; for doctor, PyTorch can use a card; for check, everything passed",
    "1": "what you asked about failed",
    "2": "wrong use",
    "3": "done, but in doubt",
    "130": "stopped by Ctrl-C",
}
_NOT_LISTED = (argparse._SubParsersAction, argparse._HelpAction)
_VARIABLES = {"NO_COLOR": "if it is set, a terminal gets no colors"}


def manual(date: str = "") -> str:
    """Return the manual page in the language of man(7); without a date, man shows none."""
    from gpu_studio.cli.main import COMMANDS, build_parser

    parser = build_parser([*COMMANDS], program="gpu-studio")
    lines = [
        f'.TH GPU\\-STUDIO 1 "{date}" "{_literal(program_title())}"',
        ".SH NAME",
        "gpu\\-studio \\- see what your graphics card can do with PyTorch",
        ".SH SYNOPSIS",
        ".B gpu\\-studio",
        "[_MANUAL [OPTIONS]]",
        ".SH DESCRIPTION",
        _literal(parser.description or ""),
        ".SH OPTIONS",
        *_options(parser),
        *_rows([("-q, --quiet", "after a command: show no progress and no notes")]),
        ".SH COMMANDS",
        *_commands(parser, ""),
        ".SH EXIT STATUS",
        *_rows(STATUS.items()),
        ".SH ENVIRONMENT",
        *_rows(_VARIABLES.items()),
    ]
    return "\n".join(lines) + "\n"


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    """Yield what each command of a parser does, with its options and its parts."""
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            continue
        for word, part in action.choices.items():
            yield f".SS {_literal(f'{name} {word}'.strip())}"
            yield _literal(part.description or "")
            yield from _options(part)
            yield from _commands(part, f"{name} {word}")


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, _NOT_LISTED) or action.dest == "quiet":
            continue
        value = "" if action.nargs == 0 else formatter._format_args(action, action.dest.upper())
        name = ", ".join(action.option_strings)
        yield from _rows([(f"{name} {value}".strip(), formatter._expand_help(action))])


def _rows(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, sentence in rows:
        yield from (".TP", f".B {_literal(name)}", _literal(sentence))


def _literal(text: str) -> str:
    """Return a text on one line, as man shows it letter by letter."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain[:1] in (".", "'") else plain


@command(json="")
def _print_manual(_options: argparse.Namespace, _log_path: Path) -> None:
    """Print the manual page, for man(1): pipe it into “man -l -”."""
    sys.stdout.write(manual())


COMMANDS = {"completion": _complete, "manual": _print_manual}
