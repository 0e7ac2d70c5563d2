"""Another PC, as the user named it, and why it cannot be reached: the system's ``ssh`` does that.

The words that run there are fixed; the user's is only the host, which is refused where ssh or a
shell could read more into it.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.program_version import portable_archive, program_version
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Greeting


LONGEST_NAME = 40
LONGEST_HOST = 255
PLACES = (
    "gpu-studio",
    "/usr/bin/gpu-studio",
    "~/.local/bin/gpu-studio",
    "~/gpu-studio/gpu-studio",
    r'"%LOCALAPPDATA%\Programs\GPU Studio\gpu-studio.exe"',
)
"""Where to look for the program there, in this order; docs/another-pc.md."""

# What sh, cmd or a ProxyCommand's shell would read more into, and no host has.
_NOT_IN_HOST = re.compile(r"""[\s"'`$;&|<>(){}!^*?#=]""")
# Devices' own words: "cuda:0" must never be a PC.
_OF_DEVICES = re.compile(r"(cpu|cuda|xpu|mps|hip|rocm|meta)(:.*|\d*)", re.IGNORECASE)


def name_trouble(name: str) -> str:
    """Return why a PC cannot have this name, as a sentence; empty if it can."""
    if not name or name != name.strip():
        return "Give the PC a name, without a space before or after it."
    if len(name) > LONGEST_NAME:
        return f"The name of a PC has at most {LONGEST_NAME} characters."
    if not name.isprintable() or any(sign in name for sign in "/,="):
        return "The name of a PC has no slash, comma, equals sign or invisible character."
    if _OF_DEVICES.fullmatch(name):
        return f"“{name}” is the name of a device. Give the PC another name."
    return ""


def host_trouble(host: str) -> str:
    """Return why ssh is not asked for this host, as a sentence; empty if it can be."""
    if not host:
        return "Type the host as you would after ssh: user@host, or a name of ~/.ssh/config."
    if len(host) > LONGEST_HOST:
        return f"A host has at most {LONGEST_HOST} characters."
    if any(part.startswith("-") for part in re.split(r"[@/]", host)):
        return "A host does not begin with “-”: ssh would take it for an option."
    if not host.isprintable() or _NOT_IN_HOST.search(host):
        return (
            "A host has no spaces, quotes or signs of a shell. Options of ssh belong into "
            "~/.ssh/config."
        )
    return ""


class OtherPc(msgspec.Struct, frozen=True, kw_only=True):
    """A PC as the user named it.

    Attributes:
        name: the user's own name for it, which stands before its devices: ``attic``.
        host: as after ``ssh``: ``user@host``, or an alias of ``~/.ssh/config``.
        program: one of `PLACES`, where its program was found; empty if nobody looked.

    Raises:
        ValueError: the host or the name is refused; the text is a sentence. (From a file:
            `msgspec.ValidationError`.)
    """

    name: Annotated[str, Meta(max_length=LONGEST_NAME)]
    host: Annotated[str, Meta(max_length=LONGEST_HOST)]
    program: str = ""

    def __post_init__(self) -> None:
        if trouble := host_trouble(self.host) or name_trouble(self.name):
            raise ValueError(trouble)
        if self.program not in PLACES:
            msgspec.structs.force_setattr(self, "program", "")


def pc_from_text(text: str) -> OtherPc:
    """Return the PC of ``HOST`` or ``NAME=HOST``, as typed in a terminal.

    Without a name, a host of one plain word is its own, without the user; an address is “another
    PC”, so that no result carries a user's or a network's name.

    Raises:
        ValueError: the name or the host is refused; the text is a sentence.
    """
    if text.startswith("-"):  # an option with a value is no name with a host
        raise ValueError(host_trouble(text))
    name, equals, host = text.rpartition("=")
    if not equals:
        word = host.rpartition("@")[2]
        is_word = re.fullmatch(r"[A-Za-z0-9_-]{1,40}", word) and not word.isdigit()
        name = word if is_word and not _OF_DEVICES.fullmatch(word) else "another PC"
    return OtherPc(name=name.strip(), host=host)


def command_to_install() -> str:
    """Return the one command that installs the portable folder and PyTorch on a PC with Linux.

    The archive of the download page is in the folder in which it is typed.
    """
    archive, place = portable_archive(program_version()), "~/gpu-studio"
    return (
        f"mkdir {place} && tar -xf {archive} -C {place} --strip-components 1 && "
        f"{place}/gpu-studio engine install"
    )


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
