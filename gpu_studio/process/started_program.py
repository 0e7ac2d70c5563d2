"""A program of the user's: started with variables, and left alone.

Windows starts .exe files itself. A .bat needs cmd, and cmd's own rules of quoting; a shortcut or a
document needs the shell. On Linux, a .desktop file has a line to start.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_PROGRAMS, _SCRIPTS = (".exe", ".com"), (".bat", ".cmd")
# Desktop Entry Specification, "The Exec key": a word is bare, or quoted with escapes.
_WORD, _ESCAPED = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)'), re.compile(r"\\(.)")
_FIELD = re.compile(r"%[fFuUdDnNickvm]")
_SHELL_FAILED = 128  # and the signal's number, as shells have it


class StartFailedError(Exception):
    """The program cannot be started; the text says why."""


def start_program(
    command: Sequence[str],
    variables: Mapping[str, str],
    unset: Collection[str] = (),
    *,
    folder: str | None = None,
    is_apart: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program with this process's streams and environment, and variables on top.

    Args:
        command: the program, a script or a shortcut, and its arguments.
        variables: what is set for it.
        unset: what it does not inherit.
        folder: its working folder; None is this process's.
        is_apart: whether it outlives this process, and Ctrl+C here does not reach it.

    Raises:
        StartFailedError: it cannot be started.
    """
    apart: dict[str, object] = {}
    if is_apart:
        apart = {"stdin": subprocess.DEVNULL}
        if sys.platform == "win32":
            apart["creationflags"] = subprocess.CREATE_NEW_CONSOLE
        else:
            apart |= {"start_new_session": True, "stdout": subprocess.DEVNULL,
                      "stderr": subprocess.DEVNULL}  # fmt: skip
    try:
        line = start_line(command)
        inherited = {name: value for name, value in os.environ.items() if name not in unset}
        return subprocess.Popen(line, env={**inherited, **variables}, cwd=folder, **apart)  # type: ignore[call-overload,no-any-return]
    except (OSError, ValueError, configparser.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"{command[0]} cannot be started: {reason}."
        raise StartFailedError(message) from error


def start_line(command: Sequence[str], system: str = sys.platform) -> list[str] | str:
    """Return what the system starts: words, or a line for cmd.

    Args:
        command: the program, a script or a shortcut, and its arguments.
        system: a value of `sys.platform`.
    """
    found = shutil.which(command[0]) or command[0]
    ending = os.path.splitext(found)[1].lower()
    if system != "win32":
        return [*_desktop_words(found), *command[1:]] if ending == ".desktop" else [*command]
    if ending in _PROGRAMS or not os.path.exists(found):
        return [found, *command[1:]]
    words = " ".join(_for_cmd(word) for word in (found, *command[1:]))
    start = "" if ending in _SCRIPTS else 'start "" /wait '
    cmd = os.environ.get("COMSPEC", "cmd.exe")
    # /s: only the outer quotes are taken away. /v:off: an exclamation mark is one.
    return f'"{cmd}" /d /v:off /s /c "{start}{words}"'


def _for_cmd(word: str) -> str:
    """Return a word as cmd and the batch file take it: no percent sign names a variable in it."""
    if "\n" in word or "\r" in word:
        message = "an argument for a batch file has more than one line"
        raise ValueError(message)
    doubled = word.replace('"', '""').replace("%", "%%cd:~,%")
    return f'"{doubled}"'


def _desktop_words(path: str) -> list[str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(Path(path).read_text(encoding="utf-8"))
    line = parser.get("Desktop Entry", "Exec").replace("\\\\", "\\")
    found = (
        _ESCAPED.sub(r"\1", quoted) if quoted else bare for quoted, bare in _WORD.findall(line)
    )
    return [word.replace("%%", "%") for word in found if not _FIELD.fullmatch(word)]


def shell_status(exit_code: int) -> int:
    """Return the exit status of a program as a shell tells it: 128 and the signal that ended it."""
    return exit_code if exit_code >= 0 else _SHELL_FAILED - exit_code


def leave(child: subprocess.Popen[bytes]) -> None:
    """Let a program go on alone: nobody waits for its end, and Python does not complain."""
    if child.poll() is None:
        child.returncode = 0
