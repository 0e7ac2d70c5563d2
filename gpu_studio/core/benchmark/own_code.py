"""A user's own code as a workload: how it is read, named, and allowed to run.

It runs with the user's rights. So it is asked for once, before its first run, and again when it has
changed; what was allowed is kept as checksums.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from typing import TYPE_CHECKING

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import OwnCode
from gpu_studio.core.resources import resource_path
from gpu_studio.core.texts import file_name
from gpu_studio.core.user_file import (
    UnusableFileError,
    read_own_text,
    read_user_file,
    write_atomically,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_BYTES = 1 << 20
PASTED = "Pasted code"
EXAMPLES = (
    ("An example to begin with", "template"),
    ("A picture (Mandelbrot)", "picture"),
    ("A tensor and Linear(1000, 500): How can I switch from CPU to GPU PyTorch?", "linear"),
    ("Batches of a DataLoader: How can I switch from CPU to GPU PyTorch?", "batches"),
    ("crunch_the_numbers: How can I run any code on my GPU? (Radosław Śmigielski)", "crunch"),
    ("Mixed precision: Chapter 17, Using torch with CUDA", "amp"),
    ("DataParallel: Chapter 17, Using torch with CUDA", "data_parallel"),
    ("A training loop: How can a PyTorch model be moved to the GPU?", "training"),
    ("A model moved to the card: When to move from CPU to GPU", "move"),
)
"""What is ready to open: its title, with that of the document that it is about, and its file."""
_ALLOWED = "allowed-code.txt"
_MOST_ALLOWED = 1000
_FENCE = re.compile(r"^\s*(```|~~~)")
_PROMPT = re.compile(r"^(>>>|\.\.\.)( |$)|^In \[\d*\]: ")


def read_own_code(path: Path, is_over: Callable[[], bool] = lambda: False) -> OwnCode:
    """Return the code in a file.

    Raises:
        StudioError: it cannot be read, or is no text.
    """
    try:
        content = read_user_file(path, MOST_BYTES, is_over)
        return own_code(content.decode("utf-8-sig"), file_name(path), str(path.absolute()))
    except (UnusableFileError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        message = f"{file_name(path)} cannot be opened: {reason}."
        raise StudioError(FailureKind.FILE_REFUSED, message) from error


def own_code(text: str, name: str = PASTED, path: str = "") -> OwnCode:
    """Return a text as code."""
    version = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    return OwnCode(name=name, text=text, version=version[:8], path=path)


def example(name: str) -> str:
    """Return the text of an example; raises `MissingResourceError` without its file."""
    return resource_path(f"examples/{name}.txt").read_text(encoding="utf-8")


def whole_text(text: str) -> str:
    """Return a text as Python reads it: without the marks around and before code on a page.

    Lines keep their numbers.
    """
    lines = text.replace("\u00a0", " ").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(map(_FENCE.match, lines)):
        lines = _fenced(lines)
    if any(line.startswith((">>>", "In [")) for line in lines):
        lines = [_PROMPT.sub("", line) if _PROMPT.match(line) else "" for line in lines]
    return "\n".join(line if not line.startswith("%") else "" for line in lines)


def _fenced(lines: list[str]) -> list[str]:
    is_inside, kept = False, []
    for line in lines:
        is_fence = _FENCE.match(line) is not None
        is_inside = is_inside is not is_fence
        kept.append(line if is_inside and not is_fence else "")
    return kept


def question(code: OwnCode) -> str:
    """Return what is asked before code runs for the first time."""
    what = code.path or "the code that you pasted"
    return (
        f"Run {what}? It runs as your own program, with your rights: it can read and change your "
        "files. GPU Studio asks once, and again when the code has changed."
    )


class AllowedCode:
    """The code that the user has allowed to run, in a file that window and terminal share.

    Args:
        folder: for the file; None keeps it only as long as this object.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / _ALLOWED if folder is not None else None
        self._here: set[str] = set()

    def has(self, code: OwnCode) -> bool:
        """Return whether this very code was allowed."""
        return _sum(code) in self._here or _sum(code) in self._kept()

    def add(self, code: OwnCode) -> None:
        """Allow it from now on; if that cannot be kept, for this time."""
        self._here.add(_sum(code))
        if self._path is not None:
            kept = [*self._kept(), _sum(code)][-_MOST_ALLOWED:]
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._path, "\n".join(kept).encode(), is_private=True)

    def _kept(self) -> list[str]:
        try:
            return read_own_text(self._path, MOST_BYTES).split() if self._path is not None else []
        except UnusableFileError:
            return []


def _sum(code: OwnCode) -> str:
    return hashlib.sha256(code.text.encode(errors="replace")).hexdigest()
