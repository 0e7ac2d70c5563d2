"""Writes what a command saves: a file whole or not at all, and pictures painted in a child."""

from __future__ import annotations

from pathlib import Path

from gpu_studio.cli.screen import note
from gpu_studio.core import limits
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.user_file import write_atomically
from gpu_studio.process.child_call import ChildCall

_MOST_BYTES = 64 << 20


def save(path: Path, content: bytes) -> None:
    """Write a file and say so.

    Raises:
        StudioError: it cannot be written.
    """
    try:
        write_atomically(path, content)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    note(f"Saved as {path}.")


def painted(painter: str, order: bytes) -> bytes:
    """Return a file that a child painted, because Qt is not in this process.

    Args:
        painter: the module whose ``answer`` paints.
        order: its input.

    Raises:
        StudioError: it could not be painted.
    """
    try:
        answer = ChildCall(painter).run(
            order, longest_s=limits.current.painting_s, most_bytes=_MOST_BYTES
        )
    except OSError as error:
        message = f"The picture could not be painted: {error.strerror or error}"
        raise StudioError(FailureKind.NOT_SAVED, message) from error
    if answer.exit_code != 0:
        message = f"The picture could not be painted: {answer.reason or 'the painter ended'}."
        raise StudioError(FailureKind.NOT_SAVED, message)
    return answer.content
