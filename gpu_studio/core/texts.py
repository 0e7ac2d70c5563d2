"""Texts that are handed on: plain ones from outside, lists in a sentence, Markdown and CSV.

A name from outside may have characters that do not show, or that show others in another order
(U+202E turns "gpj.exe" into "exe.jpg"), or that a terminal obeys. Readers of files, drivers and
other programs return texts without them, so that no page and no file has to look.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path


_SPACES = ("\u202f", "\u00a0")  # between a number and its unit
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def plain_text(text: str, instead: str = " ") -> str:
    """Return a text in one line of characters that show, each other one replaced.

    What shows is up to `str.isprintable`: not the categories Cc (control), Cf (format: of
    direction, zero width, U+FEFF), Cs (lone surrogates), Zl and Zp (separators of lines).
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in _SPACES else instead
        for character in text
    )


def file_name(path: Path) -> str:
    """Return a file's name for a sentence."""
    return plain_text(path.name or str(path))


def plain_values(value: Any) -> Any:
    """Return JSON values with plain texts, also as names of fields."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, dict):
        return {plain_values(name): plain_values(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(entry) for entry in value]
    return value


def with_plain_texts(struct: _Struct) -> _Struct:
    """Return a struct that came from outside with plain texts in all its fields."""
    return msgspec.convert(plain_values(msgspec.to_builtins(struct)), type(struct))


def listed(names: Iterable[str], before_last: str = "and") -> str:
    """Return names as a list in a sentence: ``A, B and C``; empty for none.

    Args:
        names: in their order.
        before_last: the word before the last one; ``or`` for a choice.
    """
    *others, last = [*names] or [""]
    return f"{', '.join(others)} {before_last} {last}" if others else last


_MARKUP = re.compile(r"([\\`*_{}\[\]>#|~])")


def markdown_text(text: str) -> str:
    """Return a text in one line, with Markdown's special characters and HTML escaped."""
    one_line = " ".join(text.splitlines())
    plain = _MARKUP.sub(r"\\\1", one_line)
    return plain.replace("&", "&amp;").replace("<", "&lt;")


def markdown_table(rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> str:
    """Return rows of texts as a Markdown table.

    Args:
        rows: the heads first, all of one length.
        numbers: the columns that are right-aligned.
    """
    rules = ("---:" if column in numbers else "---" for column in range(len(rows[0])))
    lines = [_line(row) for row in rows]
    lines.insert(1, f"| {' | '.join(rules)} |")
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_text, cells))} |"


Cell = str | int | float | bool | None

# A spreadsheet runs a cell that begins like this as a formula: OWASP, "CSV Injection".
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_line(cells: Iterable[Cell]) -> str:
    """Return one line with its line end; numbers stay numbers, None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([_escaped(cell) for cell in cells])
    return text.getvalue()


def _escaped(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers.

    Zero characters are removed: RFC 4180 has none, and `csv` of Python 3.10 rejects them.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\0", "")
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
