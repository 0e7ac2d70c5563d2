"""What the set-up says while it works: calm lines on stderr, everything else in a log file.

Stdout belongs to the program that is started afterwards.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class SetupError(Exception):
    """The set-up cannot go on; the text says why and what to do."""


class Console(Protocol):
    """Where the set-up's progress goes."""

    def step(self, number: int, count: int, text: str) -> None:
        """Begin one of the set-up's few steps."""

    def note(self, text: str) -> None:
        """Say one sentence."""

    def detail(self, text: str, fraction: float | None) -> None:
        """Show what is being done just now; `fraction` is 0 to 1, or None when not known."""

    def stops_with(self, stop: Callable[[], None]) -> None:
        """Say how to end what has begun, for a user who does not want to wait for it."""


class TerminalConsole:
    """Progress as lines; on a terminal, the detail of the moment on a line that is rewritten."""

    def __init__(self, stream: TextIO | None = None) -> None:
        # Without a console (pythonw) there is no stderr, and print writes nothing.
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._shown = 0

    def step(self, number: int, count: int, text: str) -> None:
        """Begin one of the set-up's few steps."""
        self.note(f"{number}/{count} {text}")

    def note(self, text: str) -> None:
        """Say one sentence."""
        self._clear()
        print(text, file=self._stream, flush=True)

    def detail(self, text: str, fraction: float | None) -> None:
        """Show what is being done just now, on a terminal only."""
        if not self._is_terminal:
            return
        share = "" if fraction is None else f" {100 * fraction:.0f} %"
        line = f"    {text}"[: 76 - len(share)] + share
        self._clear()
        print(line, end="", file=self._stream, flush=True)
        self._shown = len(line)

    def stops_with(self, stop: Callable[[], None]) -> None:
        """On a terminal, Ctrl+C reaches every process by itself."""

    def _clear(self) -> None:
        if self._shown:
            print("\r" + " " * self._shown + "\r", end="", file=self._stream)
            self._shown = 0


class Log:
    """The log file of one set-up; a folder that cannot be written to ends the set-up."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("", encoding="utf-8")
        except OSError as error:
            raise SetupError(
                f"The folder {path.parent.parent} cannot be written to ({error.strerror}): "
                "copy GPU Studio to a folder of your own and start it there."
            ) from error

    def write(self, text: str) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text.rstrip("\n") + "\n")

    def last_lines(self, count: int) -> list[str]:
        """The last lines that say something."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip()][-count:]
