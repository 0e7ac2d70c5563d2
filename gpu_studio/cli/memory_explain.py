"""``gpu-studio memory explain``: the window's error reader in a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from gpu_studio.cli.screen import note, say, say_bytes
from gpu_studio.cli.status import DONE, FAILED, WrongUseError
from gpu_studio.core.memory.oom_reader import explain_oom_text
from gpu_studio.core.memory.oom_text import MOST_CHARACTERS

# A letter has at most so many bytes in any of the encodings that are read.
_MOST_BYTES = 4 * MOST_CHARACTERS


def explain_file(name: str, *, last: bool, as_json: bool) -> int:
    """Print what the error in a file means; return the exit status.

    Args:
        name: the file; ``-`` is standard input.
        last: of several errors the last.
        as_json: its numbers alone.

    Raises:
        WrongUseError: the file cannot be read.
    """
    found = explain_oom_text(_decoded(_content(name)), last=last)
    if found is None:
        note("There is no out-of-memory error of PyTorch in this text.")
        if as_json:
            say_bytes(b"{}\n")
        return FAILED
    if found.errors > 1:
        which = "last" if last else "first"
        note(f"There are {found.errors} errors in this text; this is the {which}.")
    if as_json:
        say_bytes(msgspec.json.encode(found.numbers) + b"\n")
        return DONE
    say(found.headline)
    say(found.meaning)
    if found.tank is not None:
        say()
        for part, memory, share, meaning in found.tank.rows():
            say(f"  {part:<16}{memory:>12}{share:>8}  {meaning}")
        say("  Sizes are those of the text, which has two decimals of them.")
    say()
    for number, step in enumerate(found.first_steps, 1):
        say(f"{number}. {step}")
    return DONE


def _content(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read(_MOST_BYTES)
    try:
        with Path(name).open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise WrongUseError(f"“{name[:80]}” cannot be read: {error.strerror or error}.") from error


def _decoded(content: bytes) -> str:
    """Return a text as UTF-8, or as the UTF-16 that a Windows shell writes to files."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "replace")
