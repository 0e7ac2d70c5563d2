"""Why there is no line to another PC, or why it ended; what ssh says of it, as values and in words.

ssh answers with one exit status (255) for everything, so its own messages are all there is to read.
They are not translated: OpenSSH has no catalogs. What the PC there writes to its standard error
arrives among them, so they choose only between sentences.
"""

from __future__ import annotations

import re
from enum import Enum

import msgspec

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.plain_text import plain_text

SSH_FAILED = 255
"""ssh(1): "or with 255 if an error occurred"."""
PART_ENDED = 3
"""The exit status of a part there whose own process has ended, while the line was whole."""
_MOST_DETAIL = 300
_LONGEST_NAME = 40


class LineProblem(str, Enum):
    """Why a line does not exist, or no longer."""

    NO_SSH = "no_ssh"
    NAME_NOT_FOUND = "name_not_found"
    NO_ROUTE = "no_route"
    NO_SERVER = "no_server"
    HOST_KEY_UNKNOWN = "host_key_unknown"
    HOST_KEY_CHANGED = "host_key_changed"
    KEY_REFUSED = "key_refused"
    PASSWORD_WANTED = "password_wanted"
    SSH_SETTINGS = "ssh_settings"
    NO_PROGRAM = "no_program"
    NO_ENGINE = "no_engine"
    OTHER_VERSION = "other_version"
    NOT_OURS = "not_ours"
    SILENT = "silent"
    LOST = "lost"
    PART_ENDED = "part_ended"
    UNKNOWN = "unknown"


# The first that fits: ssh's last words may follow from its first.
_OF_SSH = (
    (
        LineProblem.HOST_KEY_CHANGED,
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key .* has changed",
    ),
    (LineProblem.HOST_KEY_UNKNOWN, r"Host key verification failed|No \S+ host key is known for"),
    (LineProblem.NAME_NOT_FOUND, r"Could not resolve hostname"),
    (LineProblem.PASSWORD_WANTED, r"Permission denied \([^)]*(password|keyboard-interactive)"),
    (
        LineProblem.KEY_REFUSED,
        r"Permission denied|Too many authentication failures|no mutual signature",
    ),
    (
        LineProblem.SSH_SETTINGS,
        r"Bad configuration option|Bad owner or permissions|terminating, \d+ bad"
        r"|hostname contains invalid|no argument after keyword",
    ),
    (LineProblem.NO_SERVER, r"Connection refused"),
    (LineProblem.NO_ROUTE, r"timed out|No route to host|Network is unreachable|Host is down"),
    (
        LineProblem.LOST,
        r"not responding|Connection reset|closed by remote host|Broken pipe|Connection closed by"
        r"|client_loop",
    ),
)

# What happened, and what to do next.
_WORDS = {
    LineProblem.NO_SSH: (
        "This PC has no ssh.",
        "Install it: on Debian and Ubuntu “sudo apt install openssh-client”, on Windows “OpenSSH "
        "Client” under Optional features.",
    ),
    LineProblem.NAME_NOT_FOUND: (
        "No PC is found under the host of {pc}.",
        "Check the host: {ssh} has to work in a terminal.",
    ),
    LineProblem.NO_ROUTE: (
        "{pc} does not answer. It may be off, asleep, or on another network.",
        "Switch it on, then connect again.",
    ),
    LineProblem.NO_SERVER: (
        "{pc} is on, but takes no ssh connections.",
        "Start its ssh server: on Debian and Ubuntu “sudo apt install openssh-server”, on Windows "
        "“OpenSSH Server” under Optional features.",
    ),
    LineProblem.HOST_KEY_UNKNOWN: (
        "ssh does not know {pc} yet, and asks whether it is the right PC.",
        "Type {ssh} in a terminal once, and compare the key that it shows.",
    ),
    LineProblem.HOST_KEY_CHANGED: (
        "{pc} shows another key than before. It was set up again, or another PC answers instead.",
        "Type {ssh} in a terminal: ssh says which key it has and what to do. Do nothing if you do "
        "not know why it changed.",
    ),
    LineProblem.KEY_REFUSED: (
        "{pc} does not accept a key of yours.",
        "Type “ssh-add” if your key has a passphrase, or “ssh-copy-id {host}” to install your key "
        "there.",
    ),
    LineProblem.PASSWORD_WANTED: (
        "{pc} asks for a password. GPU Studio handles no passwords.",
        "Type “ssh-copy-id {host}” in a terminal: then your key opens it. “ssh-keygen” makes a "
        "key.",
    ),
    LineProblem.SSH_SETTINGS: (
        "ssh does not accept its settings on this PC.",
        "Type {ssh} in a terminal: ssh says which line it does not accept.",
    ),
    LineProblem.NO_PROGRAM: (
        "GPU Studio was not found on {pc}.",
        "Install GPU Studio there, or give the path of gpu-studio on that PC.",
    ),
    LineProblem.NO_ENGINE: (
        "GPU Studio on {pc} has no PyTorch yet.",
        "Type “gpu-studio engine install” there.",
    ),
    LineProblem.OTHER_VERSION: (
        "{pc} has another version of GPU Studio. Both need the same one.",
        "Install the same version on both.",
    ),
    LineProblem.NOT_OURS: (
        "{pc} answered something that is not GPU Studio. The connection was ended.",
        "Type “{bare} gpu-studio serve hello” in a terminal to see its answer. A shell there that "
        "prints something, as in ~/.bashrc, should do so only in a terminal.",
    ),
    LineProblem.SILENT: (
        "{pc} was reached, but GPU Studio there did not answer.",
        "Connect again. If that does not help, start that PC again.",
    ),
    LineProblem.LOST: ("The connection to {pc} was lost.", "Connect again."),
    LineProblem.PART_ENDED: (
        "The sensor reader of {pc} ended. The connection is still there.",
        "Connect again. If that does not help, the log of GPU Studio there says why.",
    ),
    LineProblem.UNKNOWN: (
        "ssh could not connect to {pc}.",
        "Type {ssh} in a terminal to see why.",
    ),
}


class LineTrouble(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no line to a PC.

    Attributes:
        problem: the reason.
        pc: the name that the user gave it.
    """

    problem: LineProblem
    pc: str

    @property
    def sentence(self) -> str:
        """What happened, as a sentence."""
        return _WORDS[self.problem][0].format(pc=plain_text(self.pc)[:_LONGEST_NAME])

    @property
    def failure(self) -> Failure:
        """The trouble as the failure of a request: the engine there cannot go on."""
        return Failure(FailureKind.LINE_LOST, self.sentence, fatal=True)

    def action(self, host: str) -> str:
        """Return what to do next, as a sentence; `host` is as after ``ssh``."""
        bare = f"ssh {host}"
        return _WORDS[self.problem][1].format(ssh=f"“{bare}”", bare=bare, host=host)


def problem_of_ssh(exit_code: int | None, errors: str) -> LineProblem:
    """Return why ssh ended before the program there had answered.

    Args:
        exit_code: ssh's own, which is the program's if it ran; None if it was killed.
        errors: ssh's messages.
    """
    if exit_code is not None and exit_code not in (SSH_FAILED, 0) and exit_code > 0:
        return LineProblem.NO_PROGRAM  # a shell there found none, or one that serves nothing
    for problem, pattern in _OF_SSH:
        if re.search(pattern, errors):
            return problem
    return LineProblem.NOT_OURS if exit_code == 0 else LineProblem.UNKNOWN


def detail_of_ssh(errors: str) -> str:
    """Return ssh's last line, for a log and for a dialog's details; it may name the host."""
    lines = [plain_text(line).strip() for line in errors.splitlines()]
    return next((line[:_MOST_DETAIL] for line in reversed(lines) if line), "")
