"""Why there is no line to another PC, or why it ended, as values and in words."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.other_pc import OtherPc, command_to_install
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Greeting


class LineProblem(Enum):
    """Why a line does not exist, or no longer: what happened, what to do next, and ssh's words.

    Of those whose pattern fits, the first one counts: ssh's last words may follow from its first.
    """

    HOST_KEY_CHANGED = (
        "{pc} shows another key than before. It was set up again, or another PC answers instead.",
        "Type “ssh {host}” in a terminal: ssh says which key it has and what to do. Do nothing if "
        "you do not know why it changed.",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key .* has changed",
    )
    HOST_KEY_UNKNOWN = (
        "ssh does not know {pc} yet, and asks whether it is the right PC.",
        "Type “ssh {host}” in a terminal once, and compare the key that it shows.",
        r"Host key verification failed|No \S+ host key is known for",
    )
    NAME_NOT_FOUND = (
        "No PC is found under the host of {pc}.",
        "Check the host: “ssh {host}” has to work in a terminal.",
        r"Could not resolve hostname",
    )
    KEY_REFUSED = (
        "{pc} accepts no key of yours, and GPU Studio handles no passwords.",
        "Type “ssh-copy-id {host}” in a terminal to install your key there (“ssh-keygen” makes "
        "one), or “ssh-add” if it has a passphrase.",
        r"Permission denied|Too many authentication failures|no mutual signature",
    )
    NO_SERVER = (
        "{pc} is on, but takes no ssh connections.",
        "Start its ssh server: on Debian and Ubuntu “sudo apt install openssh-server”, on Windows "
        "“OpenSSH Server” under Optional features.",
        r"Connection refused",
    )
    NO_ROUTE = (
        "{pc} does not answer. It may be off, asleep, or on another network.",
        "Switch it on, then connect again.",
        r"timed out|No route to host|Network is unreachable|Host is down",
    )
    LOST = (
        "The connection to {pc} was lost.",
        "Connect again.",
        r"not responding|Connection reset|closed by remote host|Broken pipe|Connection closed by"
        r"|client_loop",
    )
    NO_SSH = (
        "This PC has no ssh.",
        "Install it: on Debian and Ubuntu “sudo apt install openssh-client”, on Windows “OpenSSH "
        "Client” under Optional features.",
    )
    NO_PROGRAM = (
        "GPU Studio was not found on {pc}.",
        "Install it there. On Linux, type this there, beside the downloaded portable folder: "
        "{install}",
    )
    NO_ENGINE = (
        "GPU Studio on {pc} has no PyTorch yet.",
        "Type “gpu-studio engine install” there.",
    )
    OTHER_VERSION = (
        "{pc} has another version of GPU Studio. Both need the same one.",
        "Install the same version on both.",
    )
    NOT_OURS = (
        "{pc} answered something that is not GPU Studio. The connection was ended.",
        "Type “ssh {host} gpu-studio serve hello” in a terminal to see its answer. A shell there "
        "that prints something, as in ~/.bashrc, should do so only in a terminal.",
    )
    NO_ANSWER = (
        "{pc} can be reached, but GPU Studio there does not answer, or has ended.",
        "Connect again. If that does not help, start that PC again.",
    )
    UNKNOWN = (
        "ssh could not connect to {pc}.",
        "Type “ssh {host}” in a terminal to see why.",
    )

    def __init__(self, sentence: str, next_step: str, pattern: str = "") -> None:
        self._sentence, self._next_step, self.pattern = sentence, next_step, pattern

    def notice(self, pc: OtherPc) -> Notice:
        """Return what happened on the line to a PC, and what to do next."""
        sentence = self._sentence.format(pc=plain_text(pc.name))
        next_step = self._next_step.format(host=pc.host, install=command_to_install())
        return Notice(sentence, Tone.FAILURE, next_step=next_step)

    def failure(self, pc: OtherPc) -> Failure:
        """Return it as the failure of a request to a PC: the engine there cannot go on."""
        return Failure(FailureKind.LINE_LOST, self.notice(pc).sentence, fatal=True)


class Introduction(msgspec.Struct, frozen=True):
    """What came of a first word with a PC.

    Attributes:
        pc: the PC, with the place where its program was found.
        greeting: what its program said; None if it said nothing.
        problem: why it cannot be used; None if it can.
        detail: ssh's own last line; it may name the host.
    """

    pc: OtherPc
    greeting: Greeting | None = None
    problem: LineProblem | None = None
    detail: str = ""
