"""Lines of CSV (RFC 4180) in which no text can become a formula of a spreadsheet."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Cell = str | int | float | bool | None

# A spreadsheet takes a cell that begins so for a formula and runs it: OWASP, "CSV Injection".
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_line(cells: Iterable[Cell]) -> str:
    """Return one line, its end included; numbers stay numbers, None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow([_escaped(cell) for cell in cells])
    return text.getvalue()


def _escaped(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet takes for a formula; numbers stay numbers.

    A zero character is left out: RFC 4180 has none, and `csv` of Python 3.10 takes none.
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\0", "")
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
