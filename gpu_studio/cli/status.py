"""How a command ends."""

from __future__ import annotations

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


class WrongUseError(Exception):
    """What was typed makes no sense; the text is the line to show."""
