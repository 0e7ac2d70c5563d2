"""The one line that gives a Python the PyTorch that is right for a card, to copy; never run by us.

It names exact versions with their label: pip takes ``2.9.1+cu130`` for what ``torch==2.9.1`` asks
for and would do nothing, and ``--force-reinstall`` would exchange NumPy and others as well.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.program_form import typed
from gpu_studio.core.pythons.environment import PythonKind
from gpu_studio.core.pythons.torch_files import names_in

if TYPE_CHECKING:
    from gpu_studio.core.pythons.coverage import Choice
    from gpu_studio.core.pythons.environment import Environment

# PowerShell takes these for single quotes as well.
_SINGLE_QUOTES = "'\u2018\u2019\u201a\u201b"
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:\\")


class MendLine(NamedTuple):
    """A line to copy.

    Attributes:
        text: for sh, or for PowerShell on Windows; "" if there is none.
        cmd: the same for Windows' cmd, if that differs.
        note: what else to know about it, in a sentence.
        why_none: why there is no line.
    """

    text: str = ""
    cmd: str = ""
    note: str = ""
    why_none: str = ""


def line_for(
    one: Environment, choice: Choice, system: str, *, only: tuple[str, ...] = ()
) -> MendLine:
    """Return the line that installs a build into a Python.

    Args:
        one: the Python.
        choice: the build.
        system: "Linux" or "Windows", whose shells it is for.
        only: what to install, if PyTorch itself is right: ``torchvision``.
    """
    if one.kind is PythonKind.ENGINE:
        command = "repair" if one.torch.trouble else "install"
        return MendLine(typed(f"gpu-studio engine {command}"))
    why_none = _why_none(one)
    if why_none:
        return MendLine(why_none=why_none)
    wanted = _requirements(one, choice, only)
    if one.has_pip or (one.kind is PythonKind.USER and one.python.startswith("py ")):
        start, arguments = [one.python], [*_switches(one), "-m", "pip", "install"]
    else:
        start, arguments = ["uv"], ["pip", "install", "--python", one.python]
    arguments += _options(one, choice, wanted, system)
    arguments += [*wanted, "--index-url", choice.index_url]
    if system == "Windows":
        power, cmd = _power_line(start[0], arguments), _cmd_line(start[0], arguments)
        return MendLine(power, "" if cmd == power else cmd, _note(one))
    needs_root = one.kind is PythonKind.PLAIN and not one.is_writable
    root = ["sudo"] if needs_root else []
    line = shlex.join([*root, *start, *arguments])
    records = [f"{one.site}/{name}" for name in one.torch.unreadable]  # Linux alone removes them
    if records and not only:  # pip would stop at what it cannot read
        line = f"{shlex.join([*root, 'rm', '-r', *records])} && {line}"
    return MendLine(line, "", _note(one))


def _why_none(one: Environment) -> str:
    paths = one.python + one.folder
    if not paths.isprintable() or "\ufffd" in paths:
        return "The name of its folder has characters that cannot be typed."
    if one.lost:
        return "Its Python is not there, perhaps on a drive that is not connected."
    if not one.python:
        return "It has no Python of its own, so nothing can be installed for it here."
    if one.kind is PythonKind.SYSTEM:
        return "It belongs to Linux's own packages. Give your program an environment of its own."
    if one.torch.trouble == "source":
        return "It is a PyTorch built from sources: build it again for your card."
    return ""


def _requirements(one: Environment, choice: Choice, only: tuple[str, ...]) -> list[str]:
    extra = f"[{choice.extra}]" if choice.extra else ""
    versions = {"torch": choice.version}
    if one.torch.vision:
        versions["torchvision"] = choice.vision
    if one.torch.audio:
        versions["torchaudio"] = choice.audio
    if choice.extra and one.torch.devices:  # PyPI has placeholders of that name
        versions[f"amd-torch-{choice.extra}"] = choice.version
    return [
        f"{name}{extra if name in ('torch', 'torchvision') else ''}=={version}"
        for name, version in versions.items()
        if version and (not only or name in only)
    ]


def _switches(one: Environment) -> list[str]:
    """Return what keeps a Python from the user's own packages: an environment does by itself."""
    return [] if one.kind in (PythonKind.VENV, PythonKind.USER) else ["-s"]


def _options(one: Environment, choice: Choice, wanted: list[str], system: str) -> list[str]:
    """Return what else pip has to know; plain, it leaves alone whatever has that version."""
    options = []
    if one.kind is PythonKind.USER and one.has_pip:
        options.append("--user")
    if one.is_managed:
        options.append("--break-system-packages")
    if not wanted[0].startswith("torch") or wanted[0].startswith(("torchv", "torcha")):
        return options
    if one.torch.unreadable and system == "Windows":  # its builds have all they need in them
        options += ["--ignore-installed", "--no-deps"]
    elif choice.version in one.torch.records:
        if one.torch.trouble or one.torch.version != choice.version:
            options.append("--force-reinstall")
        if one.torch.trouble and one.torch.version == choice.version:
            options.append("--no-deps")
    return options


def _note(one: Environment) -> str:
    if one.torch.by_conda:
        return (
            "conda installed this PyTorch, and will not know that pip exchanged it. If conda "
            "shall keep track, choose a build of pytorch-gpu with conda instead."
        )
    if one.is_managed:
        return "Its system wants this Python left alone: better give the program its own."
    is_made_for = "xformers" in names_in(one.site)
    return "xformers is made for one PyTorch: install it again afterwards." if is_made_for else ""


def _power_line(program: str, arguments: list[str]) -> str:
    """Return a line for PowerShell, which runs a quoted program only after ``&``."""
    words = [_power(word) for word in arguments]
    if program.startswith("py ") or program == "uv" or _is_bare(program):
        return " ".join([program, *words])
    return " ".join(["&", _power(program), *words])


def _power(word: str) -> str:
    if _is_bare(word) or not _needs_quotes(word):
        return word
    doubled = "".join(letter * 2 if letter in _SINGLE_QUOTES else letter for letter in word)
    return f"'{doubled}'"


def _cmd_line(program: str, arguments: list[str]) -> str:
    """Return a line for cmd; "" if none is sure: inside quotes, it still replaces %NAME%."""
    if "%" in program or '"' in program:
        return ""
    words = [program if program.startswith("py ") else _cmd(program), *map(_cmd, arguments)]
    return " ".join(words)


def _cmd(word: str) -> str:
    return f'"{word}"' if not _is_bare(word) and _needs_quotes(word) else word


def _is_bare(word: str) -> bool:
    return _BARE.issuperset(word)


def _needs_quotes(word: str) -> bool:
    """Return whether a word is more than a requirement, whose letters no shell minds."""
    return not _BARE.issuperset(word.translate({ord(letter): None for letter in "[]=+"}))
