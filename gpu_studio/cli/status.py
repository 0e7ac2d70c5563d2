"""The exit status of a command."""

from __future__ import annotations

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


class WrongUseError(Exception):
    """The command line makes no sense; the text is the message to show."""
