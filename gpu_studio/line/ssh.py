"""What the system's own ``ssh`` is asked, and what it and the program there say first.

ssh answers with one exit status (255) for everything, so its own messages are all there is to read.
They are not translated: OpenSSH has no catalogs. What the PC there writes to its standard error
arrives among them, so they choose only between sentences.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpu_studio.core.messages.message import Greeting, decode_greeting
from gpu_studio.core.other_pc import PLACES, LineProblem, OtherPc
from gpu_studio.core.protocol import protocol_version
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from gpu_studio.line.line_child import LineChild

CONNECT_TIMEOUT_S = 10
"""Seconds until ssh gives up on a host that does not answer."""
# ssh_config(5). ssh asks no questions, and gives up after 8 s without an answer.
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": f"{CONNECT_TIMEOUT_S}",
    "ServerAliveInterval": "2",
    "ServerAliveCountMax": "3",
    "ControlMaster": "no",
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "ForwardAgent": "no",
    "PermitLocalCommand": "no",
    "LogLevel": "INFO",
}
ServedPart = Literal["hello", "engine", "sensors"]
_SSH_FAILED = 255  # ssh(1): "or with 255 if an error occurred"
_MOST_DETAIL = 300


def ssh_program() -> str:
    """Return the path of the system's own ``ssh``; its name if there is none.

    Windows has it in System32 since 2018. Another one in the PATH, such as Git's, knows neither its
    agent nor its keys.
    """
    if sys.platform == "win32":
        own = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "OpenSSH", "ssh.exe")
        if own.is_file():
            return str(own)
    return shutil.which("ssh") or "ssh"


def ssh_command(pc: OtherPc, part: ServedPart) -> tuple[str, ...]:
    """Return the command for one conversation with a PC.

    ssh has no terminal (``-T``). A shared connection that the user opened is used
    (``ControlPath``), none is left behind. Everything after ``--`` is the host and the command
    there: ssh(1).

    The ssh of Windows cannot share a connection. If the user's settings want one, it fails:
    github.com/PowerShell/Win32-OpenSSH, issue 405.
    """
    options = dict(_OPTIONS)
    if sys.platform == "win32":
        options["ControlPath"] = "none"
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return (ssh_program(), "-T", *words, "--", pc.host, f"{pc.program or PLACES[0]} serve {part}")


class LineGreeting:
    """Reads the greeting of one conversation; call it with each line until it answers.

    Attributes:
        greeting: the greeting, as soon as there is one; it may be another version's.
    """

    def __init__(self, part: ServedPart) -> None:
        self._part = part
        self.greeting: Greeting | None = None

    def __call__(self, line: bytes) -> bool | None:
        """Return whether to go on with the program of this greeting; None if it is no greeting."""
        self.greeting = decode_greeting(line)
        if self.greeting is None:
            return None
        return self.problem is None and self._part != "hello"

    @property
    def problem(self) -> LineProblem | None:
        """Why not to talk to the program that has greeted; None if nothing speaks against it."""
        if self.greeting is None:
            return LineProblem.NOT_OURS
        if self.greeting.protocol != protocol_version():
            return LineProblem.OTHER_VERSION
        if self._part == "engine" and not self.greeting.has_engine:
            return LineProblem.NO_ENGINE
        return None

    def why_ended(self, line: LineChild, exit_code: int | None) -> LineProblem:
        """Return why a conversation has ended.

        Args:
            line: the conversation.
            exit_code: of its ssh, which is the program's if it ran; None if it was killed.
        """
        if line.has_flooded:
            return LineProblem.NOT_OURS
        if line.is_greeted:
            # The part there ends with 0, and only after its own child; ssh says 255 of a cut line.
            return LineProblem.NO_ANSWER if exit_code == 0 else LineProblem.LOST
        if self.greeting is not None:
            return self.problem or LineProblem.LOST
        if line.was_silent:
            return LineProblem.NO_ANSWER
        if exit_code is not None and 0 < exit_code != _SSH_FAILED:
            return LineProblem.NO_PROGRAM  # a shell there found none, or one that serves nothing
        for problem in LineProblem:
            if problem.pattern and re.search(problem.pattern, line.error_text):
                return problem
        return LineProblem.NOT_OURS if exit_code == 0 else LineProblem.UNKNOWN


def detail_of_ssh(errors: str) -> str:
    """Return ssh's last line, for a log and for a dialog's details; it may name the host."""
    lines = [plain_text(line).strip() for line in errors.splitlines()]
    return next((line[:_MOST_DETAIL] for line in reversed(lines) if line), "")
