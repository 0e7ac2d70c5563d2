"""What a command gives: lines, a growing table, a progress line, JSON, and files.

A terminal gets words wrapped to its width, and colors unless NO_COLOR is set; rich knows what it
can show. A file or a pipe gets each line whole and plain.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.message import Message
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.protocol import encode
from gpu_studio.core.texts import plain_text
from gpu_studio.core.user_file import write_atomically
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from argparse import Namespace

    from rich.console import Console
    from rich.live import Live

SCHEMA = 1
"""The next number for a change of what JSON means; a new field is none."""
# Longer lines are hard to read, however wide the terminal is.
_LONGEST_LINE = 100
_SHORTEST_LINE = 40
_is_quiet = False
_shown: Progress | None = None  # the progress line that other output has to erase first


@contextmanager
def kept_quiet(is_quiet: bool) -> Iterator[None]:
    """Show no progress and no notes meanwhile, only results and errors, if the user wants that."""
    global _is_quiet
    _is_quiet = is_quiet
    try:
        yield
    finally:
        _is_quiet = False


class Progress:
    """A progress line that overwrites itself; redirected output gets none of it.

    Args:
        stream: standard error by default, so that results can be redirected.

    Attributes:
        is_live: whether the stream is a terminal.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self.is_live = self._stream.isatty() and not _is_quiet
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Replace the line, as far as the terminal is wide: a line that wraps stays forever."""
        if not self.is_live:
            return
        room = shutil.get_terminal_size().columns - 1
        text = plain(text)
        text = text if len(text) <= room else f"{text[: room - 1]}…"
        global _shown
        self._stream.write("\r" + text.ljust(min(self._width, room)))
        self._stream.flush()
        self._width, _shown = len(text), self

    def clear(self) -> None:
        """Erase the line; other output does so by itself."""
        if self.is_live and self._width:
            room = shutil.get_terminal_size().columns - 1
            self._stream.write("\r" + " " * min(self._width, room) + "\r")
            self._stream.flush()
            self._width = 0


class LiveText:
    """Lines that a terminal shows in one place, each time anew; a file gets them all."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def __enter__(self) -> LiveText:
        if sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(console=_console(sys.stdout), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, lines: Sequence[str]) -> None:
        """Show lines in place of the last ones; what does not fit the terminal is cut."""
        if self._live is None:
            for line in (*lines, ""):
                print_line(line)
            return
        from rich.text import Text

        text = Text("\n".join(map(plain, lines)), no_wrap=True, overflow="crop")
        self._live.update(text, refresh=True)


class TerminalTable:
    """A text table whose rows are printed as they arrive.

    Args:
        columns: headings and widths; a negative width aligns right. Below a last column of words,
            a terminal continues them.
        dispensable: headings of the columns that a narrow terminal does without, first to go first.
    """

    def __init__(self, columns: Sequence[tuple[str, int]], dispensable: Sequence[str] = ()) -> None:
        self._widths = [width for _, width in columns]
        self._shown = [*range(len(columns))]
        headings = [heading for heading, _ in columns]
        left_out: set[int] = set()
        for heading in dispensable if sys.stdout.isatty() else ():
            if self._room() < shutil.get_terminal_size().columns:
                break
            left_out.add(headings.index(heading))
            self._shown = [place for place in self._shown if place not in left_out]
        self.heading = self.row(headings)

    def _room(self) -> int:
        widths: list[int] = [abs(self._widths[place]) for place in self._shown]
        return sum(widths) + 2 * len(widths) - 2

    def row(self, cells: Sequence[str]) -> str:
        """Return a row as one line."""
        aligned = []
        for place in self._shown:
            cell, width = plain(cells[place]), self._widths[place]
            aligned.append(cell.rjust(-width) if width < 0 else cell.ljust(width))
        return "  ".join(aligned).rstrip()

    def print_row(self, cells: Sequence[str]) -> None:
        """Print a row; in a terminal, its last column's words continue below themselves."""
        last = self._room() - abs(self._widths[self._shown[-1]])
        print_line(self.row(cells), indent=last)


class Typed(str):
    """A line with a command to type: it is copied, so it stays one line in any terminal."""

    __slots__ = ()


def plain(text: str) -> str:
    """Return the text as one line, in characters that most terminals have."""
    return plain_text(text.replace("\u202f", " "))


# What a line that begins so is printed in.
_STYLES = {
    "[ok]": "green", "[warning]": "yellow", "[unsure]": "yellow", "[problem]": "bold red",
    "in doubt: ": "yellow",
}  # fmt: skip


def print_line(text: str = "", *, style: str = "", indent: int | None = None) -> None:
    """Write a line of the result.

    Args:
        text: the line.
        style: its color, as rich names it, for a terminal that has colors; a line that begins
            with a mark has the mark's.
        indent: where a terminal continues the words that do not fit; by default below its first
            word. A `Typed` line stays whole.
    """
    begin = text.lstrip()
    mark = next((color for mark, color in _STYLES.items() if begin.startswith(mark)), "")
    _write(sys.stdout, text, style or mark, indent)


def note(text: str) -> None:
    """Write a line to standard error, beside the result."""
    if not _is_quiet:
        _write(sys.stderr, text, "", None)


def complain(text: str) -> None:
    """Write what went wrong to standard error, also if the user wants no notes."""
    _write(sys.stderr, text, "red", None)


def _write(stream: TextIO, text: str, style: str, indent: int | None) -> None:
    if _shown is not None:
        _shown.clear()
    line = plain(text)
    if not stream.isatty():
        stream.write(line + "\n")
        stream.flush()
        return
    console = _console(stream)
    if indent is None:
        indent = len(line) - len(line.lstrip())
    width = max(min(console.width, _LONGEST_LINE), _SHORTEST_LINE)
    lines = [line] if isinstance(text, Typed) or len(line) <= console.width else textwrap.wrap(
        line, width, subsequent_indent=" " * indent, break_long_words=False,
        break_on_hyphens=False, replace_whitespace=False,
    )  # fmt: skip
    for one in lines or [""]:
        console.print(one, style=style or None, soft_wrap=True)


def _console(stream: TextIO) -> Console:
    from rich.console import Console  # 60 ms, and only a terminal needs it

    return Console(file=stream, highlight=False, markup=False, emoji=False)


def print_bytes(line: bytes) -> None:
    """Write a line of JSON, always in UTF-8."""
    if _shown is not None:
        _shown.clear()
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def print_json(kind: str, value: object) -> None:
    """Write an object as a line of JSON, with its kind as ``type`` and the schema's number."""
    fields = msgspec.to_builtins(value)
    print_bytes(msgspec.json.encode({"type": kind, "schema": SCHEMA, **fields}) + b"\n")


def print_event(event: Message) -> None:
    """Write an event as a line of JSON; a finished run says how far to trust it."""
    fields = msgspec.json.decode(encode(event))
    if isinstance(event, RunFinished):
        from gpu_studio.core.benchmark.trust import doubts_of

        fields["in_doubt"] = [
            {"kind": doubt.kind, "sentence": doubt.sentence} for doubt in doubts_of(event)
        ]
    print_json(fields.pop("type"), fields)


def give(
    kind: str, value: object, lines: Iterable[str], options: Namespace, *, name: str = ""
) -> None:
    """Write a command's answer, as lines or as one JSON object.

    Args:
        kind: the object's ``type``.
        value: its fields; with a ``name``, its only one.
        lines: the same in words; they are made only if they are shown.
        options: what was typed.
        name: of the only field.
    """
    if options.json:
        print_json(kind, {name: value} if name else value)
        return
    for line in lines:
        print_line(line)


def now() -> str:
    """Return the time in ISO 8601 with milliseconds and time zone."""
    return datetime.now(timezone.utc).astimezone().isoformat(timespec="milliseconds")


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
