"""What a child process wrote to the log since a moment: the words of its failure."""

from __future__ import annotations

from pathlib import Path

from gpu_studio.core.user_file import UnusableFileError, open_user_file

_LAST_LINES = 12
_MOST_BYTES = 4 << 20


class ChildLog:
    """The part of a log that is written from now on.

    Args:
        path: The log file, which may be missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._start = path.stat().st_size
        except OSError:
            self._start = 0

    def text(self) -> str:
        """Return what was written; empty if it cannot be read."""
        try:
            with open_user_file(self._path) as file:
                file.seek(self._start)
                return file.read(_MOST_BYTES).decode("utf-8", errors="replace")
        except (UnusableFileError, OSError):
            return ""


def last_words(text: str) -> str:
    """Return the last lines of a log that are not blank."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_LAST_LINES:])
