"""Markdown in which names from outside stay names: in their cell, without markup or HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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
