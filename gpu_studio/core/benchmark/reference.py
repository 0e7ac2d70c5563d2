"""Published measurements by others, each with its source, next to this PC's results.

This program measured none of them, so they are shown as a table, never as a curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.resources import read_resource
from gpu_studio.core.units import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

GT_1030 = "reference/gt_1030.json"
BUDGET_S = 2.0
HEAD = ("Size", "Iterations", "Post: Ryzen 7 5700G", "Post: GT 1030", "Here: CPU", "Here: GPU")


class PublishedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One size of a published table: seconds for all iterations, as printed."""

    size: int
    iterations: int
    cpu_s: float
    card_s: float


class PublishedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A published table and the information that must be shown with it."""

    schema: int
    title: str
    author: str
    published: str
    about: str
    method: str
    workload: str
    dtype: str
    system: str
    cpu: str
    card: str
    rows: tuple[PublishedRow, ...]

    @property
    def source(self) -> str:
        """The title, author and date in one line."""
        return f"“{self.title}” by {self.author}, {self.published}"


def published_table(name: str = GT_1030) -> PublishedTable:
    """Return a table that is part of the program.

    Raises:
        MissingResourceError: the file is missing or damaged.
    """
    return read_resource(name, PublishedTable)


def experiment(table: PublishedTable, devices: Sequence[str]) -> Plan:
    """Return the table's work as a plan of budgeted runs, each with the naive time."""
    return Plan(
        workload=table.workload,
        sizes=tuple(row.size for row in table.rows),
        dtypes=(table.dtype,),
        devices=tuple(devices),
        settings={"budget_s": BUDGET_S, "naive": True},
    )


def experiment_rows(
    table: PublishedTable, results: Sequence[RunFinished], devices: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return `HEAD`'s cells of each size: the times of all its iterations.

    Args:
        table: the published table.
        results: the last one of each size and device counts: its median times the iterations.
        devices: the CPU and a card of this PC; a card may be missing.
    """
    kind = (table.workload, table.dtype, "hot", False, None)
    medians = {
        (one.size, one.device): one.median_s
        for one in results
        if (one.workload, one.dtype, one.cache, one.transfers, one.recording) == kind
    }
    return [
        (
            format_size(row.size),
            str(row.iterations),
            format_duration(row.cpu_s),
            format_duration(row.card_s),
            *(
                f"≈ {format_duration(row.iterations * medians[row.size, device])}"
                if (row.size, device) in medians
                else "–"
                for device in (*devices, "", "")[:2]
            ),
        )
        for row in table.rows
    ]
