"""What the build says, and how it fails."""

from __future__ import annotations

import signal
import sys


class BuildError(Exception):
    """The build cannot go on; the text says why, and what to do."""


def end_as_exception() -> None:
    """Let a build that is ended from outside remove its folder, which takes up to 1 GB."""
    for name in ("SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, lambda got, _: sys.exit(128 + got))


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)
