"""Published measurements by others, each with its source, next to this PC's results.

This program measured none of them, so they are shown as a table, never as a curve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.plan import Plan
from gpu_studio.core.json_resource import read_resource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.run_messages import RunFinished

GT_1030 = "reference/gt_1030.json"


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

    def row(self, size: int) -> PublishedRow | None:
        """Return the row of a size."""
        return next((row for row in self.rows if row.size == size), None)


class ExperimentRow(msgspec.Struct, frozen=True, kw_only=True):
    """This PC beside one published row.

    ``iterations_s`` is the time of the row's iterations, by device address. If ``timed_calls`` is
    the same number, it is their sum. Otherwise it is the median of one call times the iterations,
    which counts as scaled if there were fewer calls.
    """

    published: PublishedRow
    iterations_s: dict[str, float]
    timed_calls: dict[str, int]

    def is_scaled(self, device: str) -> bool:
        """Whether fewer calls were timed on a device than the row has iterations."""
        return self.timed_calls[device] < self.published.iterations

    def label(self, device: str) -> str:
        """Return how a device's time was obtained, to show beside it."""
        calls, iterations = self.timed_calls[device], self.published.iterations
        counted = "1 call" if calls == 1 else f"{calls} calls"
        return (
            f"scaled from {counted} to {iterations}"
            if self.is_scaled(device)
            else f"from {counted}"
        )


def published_table(name: str = GT_1030) -> PublishedTable:
    """Return a table that is part of the program.

    Raises:
        MissingResourceError: the file is missing or damaged.
    """
    return read_resource(name, PublishedTable)


def experiment(
    table: PublishedTable, devices: Sequence[str], budget_s: float, *, sustained: bool = False
) -> Plan:
    """Return the table's work as a plan of budgeted runs, each with the naive time."""
    return Plan(
        workload=table.workload,
        sizes=tuple(row.size for row in table.rows),
        dtypes=(table.dtype,),
        devices=tuple(devices),
        budget_s=budget_s,
        naive=True,
        sustained=sustained,
    )


def experiment_rows(table: PublishedTable, results: Sequence[RunFinished]) -> list[ExperimentRow]:
    """Return this PC's rows beside the table's, one for each size with a result.

    Args:
        table: the published table.
        results: the experiment's results; the last one of each size and device counts.
    """
    rows = []
    for published in table.rows:
        ours = {
            result.device: result
            for result in results
            if (result.workload, result.dtype, result.size)
            == (table.workload, table.dtype, published.size)
            and not result.transfers
        }
        if ours:
            rows.append(
                ExperimentRow(
                    published=published,
                    iterations_s={
                        device: _iterations_s(published, result) for device, result in ours.items()
                    },
                    timed_calls={device: _timed_calls(result) for device, result in ours.items()},
                )
            )
    return rows


def _timed_calls(result: RunFinished) -> int:
    return result.samples * result.calls_per_sample


def _iterations_s(published: PublishedRow, result: RunFinished) -> float:
    if result.times.timed_s is not None and _timed_calls(result) == published.iterations:
        return result.times.timed_s
    return published.iterations * result.median_s
