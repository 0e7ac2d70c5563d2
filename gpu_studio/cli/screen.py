"""Terminal output: a growing table, and a progress line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import TextIO

import msgspec

from gpu_studio.core.texts import plain_text

_WIDEST_PROGRESS = 78


class Progress:
    """A progress line that overwrites itself; redirected output gets none of it.

    Args:
        stream: standard error by default, so that results can be redirected.

    Attributes:
        is_live: whether the stream is a terminal.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self.is_live = self._stream.isatty()
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Replace the line."""
        if not self.is_live:
            return
        text = plain(text)[:_WIDEST_PROGRESS]
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        """Erase the line before other output takes its place."""
        if self.is_live and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


class TerminalTable:
    """A text table whose rows are printed as they arrive.

    Args:
        columns: headings and widths; a negative width aligns right.
    """

    def __init__(self, columns: Sequence[tuple[str, int]]) -> None:
        self._widths = [width for _, width in columns]
        self.heading = self.row([heading for heading, _ in columns])

    def row(self, cells: Sequence[str]) -> str:
        """Return a row as one line."""
        aligned = (
            cell.rjust(-width) if width < 0 else cell.ljust(width)
            for cell, width in zip(map(plain, cells), self._widths, strict=True)
        )
        return "  ".join(aligned).rstrip()


def plain(text: str) -> str:
    """Return the text as one line, in characters that most terminals have."""
    return plain_text(text.replace("\u202f", " "))


def print_line(text: str = "") -> None:
    """Write a line of the result."""
    sys.stdout.write(plain(text) + "\n")
    sys.stdout.flush()


def print_bytes(line: bytes) -> None:
    """Write a line of JSON, always in UTF-8."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def print_json(value: object) -> None:
    """Write a value as a line of JSON."""
    print_bytes(msgspec.json.encode(value) + b"\n")


def print_list(name: str, values: Sequence[object], lines: Iterable[str], *, as_json: bool) -> None:
    """Write a list, as lines or as one JSON object with this name for the values."""
    if as_json:
        print_json({name: values})
        return
    for line in lines:
        print_line(line)


def note(text: str) -> None:
    """Write a line to standard error, beside the result."""
    sys.stderr.write(plain(text) + "\n")
    sys.stderr.flush()


def now() -> str:
    """Return the time in ISO 8601 with milliseconds and time zone."""
    return datetime.now(timezone.utc).astimezone().isoformat(timespec="milliseconds")
