"""CSV lines (RFC 4180) whose texts a spreadsheet cannot take for formulas."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
