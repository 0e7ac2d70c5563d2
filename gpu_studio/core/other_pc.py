"""Another PC, which this one reaches with the system's own ``ssh``.

Nothing here opens a connection: this is what the user said of that PC, and the command that reaches
it. The words that run there are fixed; the user's is only the host, which is refused where ssh or a
shell could read more into it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpu_studio.core.program_version import portable_archive, program_version

LONGEST_NAME = 40
LONGEST_HOST = 255
CONNECT_TIMEOUT_S = 10
"""Seconds until ssh gives up on a host that does not answer."""
PLACES = (
    "gpu-studio",
    "/usr/bin/gpu-studio",
    "~/.local/bin/gpu-studio",
    "~/gpu-studio/gpu-studio",
    r'"%LOCALAPPDATA%\Programs\GPU Studio\gpu-studio.exe"',
)
"""Where to look for the program there, in this order; docs/another-pc.md."""

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


def command_to_install() -> str:
    """Return the one command that installs the portable folder and PyTorch on a PC with Linux.

    The archive of the download page is in the folder in which it is typed.
    """
    archive, place = portable_archive(program_version()), "~/gpu-studio"
    return (
        f"mkdir {place} && tar -xf {archive} -C {place} --strip-components 1 && "
        f"{place}/gpu-studio engine install"
    )
