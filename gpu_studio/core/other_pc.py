"""Another PC, as the user named it; the system's own ``ssh`` reaches it.

The words that run there are fixed; the user's is only the host, which is refused where ssh or a
shell could read more into it.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.program_version import portable_archive, program_version

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
