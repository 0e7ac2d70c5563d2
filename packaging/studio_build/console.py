"""What the build says, and how it fails."""

from __future__ import annotations


class BuildError(Exception):
    """The build cannot go on; the text says why, and what to do."""


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)
