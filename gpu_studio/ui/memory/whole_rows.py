"""Tables that end where a row ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QTableView

_LEAST_ROWS = 2  # fewer are no table: then the others are scrolled to


def height_of_rows(view: QTableView, rows: int | None = None) -> int:
    """Return how high a table is that shows so many rows whole; None for all."""
    bar = view.horizontalScrollBar()
    frame = 2 * view.frameWidth() + view.horizontalHeader().sizeHint().height()
    if bar.maximum() > 0:
        frame += bar.sizeHint().height()
    rows = view.model().rowCount() if rows is None else rows
    return frame + view.verticalHeader().defaultSectionSize() * rows


def show_whole_rows(view: QTableView, room: int | None = None) -> None:
    """Make a table as high as its rows, or as those for which there is room.

    Args:
        view: its rows are all of one height.
        room: how high it may be, in pixels; None for as high as it likes. Where the room becomes
            less the table can be made lower, down to some rows.
    """
    rows = view.model().rowCount()
    if room is None:
        view.setFixedHeight(height_of_rows(view, rows))
        return
    least = min(rows, _LEAST_ROWS)
    fitting = (room - height_of_rows(view, 0)) // view.verticalHeader().defaultSectionSize()
    view.setSizeAdjustPolicy(view.SizeAdjustPolicy.AdjustToContents)
    view.setMinimumHeight(height_of_rows(view, least))
    view.setMaximumHeight(height_of_rows(view, max(min(rows, fitting), least)))
