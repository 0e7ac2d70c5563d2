"""The setup's output: a few lines on stderr, everything else in a log file.

Stdout belongs to the program that starts afterwards.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class SetupError(Exception):
    """The setup cannot continue; the text says why and what to do."""


class Console(Protocol):
    """Shows the setup's progress."""

    def step(self, number: int, count: int, text: str) -> None:
        """Start one of the setup's steps."""

    def note(self, text: str) -> None:
        """Print a sentence."""

    def detail(self, text: str, fraction: float | None) -> None:
        """Show the current action; `fraction` is 0 to 1, or None if unknown."""

    def stops_with(self, stop: Callable[[], None]) -> None:
        """Set the function that ends the current action if the user stops the setup."""


class TerminalConsole:
    """Prints progress as lines; on a terminal, the last line shows the current action."""

    def __init__(self, stream: TextIO | None = None) -> None:
        # Without a console (pythonw), stderr is None and print writes nothing.
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._shown = 0

    def step(self, number: int, count: int, text: str) -> None:
        """Start one of the setup's steps."""
        self.note(f"{number}/{count} {text}")

    def note(self, text: str) -> None:
        """Print a sentence."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def detail(self, text: str, fraction: float | None) -> None:
        """Show the current action, on a terminal only."""
        if not self._is_terminal:
            return
        share = "" if fraction is None else f" {100 * fraction:.0f} %"
        line = f"    {text}"[: 76 - len(share)] + share
        self._clear()
        print(line, end="", file=self._stream, flush=True)
        self._shown = len(line)

    def stops_with(self, stop: Callable[[], None]) -> None:
        """Do nothing: on a terminal, Ctrl+C reaches every process."""

    def _clear(self) -> None:
        if self._shown:
            print("\r" + " " * self._shown + "\r", end="", file=self._stream)
            self._shown = 0


class Log:
    """The log file of one setup; a folder that cannot be written to ends the setup."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("", encoding="utf-8")
        except OSError as error:
            raise SetupError(
                f"GPU Studio cannot write to {path.parent.parent} ({error.strerror}): copy "
                "GPU Studio to a folder in your home folder and start it there."
            ) from error

    def write(self, text: str) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text.rstrip("\n") + "\n")

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines that are not empty."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip()][-count:]
