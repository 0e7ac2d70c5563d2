"""Published measurements by others, each with its source.

This program measured none of them, so they are shown as a table, never as a curve.
"""

from __future__ import annotations

import msgspec

from gpu_studio.core.resources import read_resource
from gpu_studio.core.units import format_duration, format_size

GT_1030 = "reference/gt_1030.json"
HEAD = ("Size", "Iterations", "Ryzen 7 5700G", "GT 1030")


class PublishedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One size of a published table: seconds for all iterations, as printed."""

    size: int
    iterations: int
    cpu_s: float
    card_s: float


class PublishedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A published table and the information that must be shown with it."""

    title: str
    author: str
    published: str
    about: str
    method: str
    rows: tuple[PublishedRow, ...]

    @property
    def source(self) -> str:
        """Where it is from, what it is about, and how it was measured."""
        return f"“{self.title}” by {self.author}, {self.published}. {self.about} {self.method}"

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The cells of `HEAD` for each size."""
        return [
            (
                format_size(row.size),
                str(row.iterations),
                format_duration(row.cpu_s),
                format_duration(row.card_s),
            )
            for row in self.rows
        ]


def published_table(name: str = GT_1030) -> PublishedTable:
    """Return a table that is part of the program.

    Raises:
        MissingResourceError: the file is missing or damaged.
    """
    return read_resource(name, PublishedTable)
