"""Tables that end where a row ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QTableView

_LEAST_ROWS = 2  # fewer are no table: then the others are scrolled to


def show_whole_rows(view: QTableView, room: int | None = None) -> None:
    """Make a table as high as its rows, or as those for which there is room.

    Args:
        view: its rows are all of one height.
        room: how high it may be, in pixels; None for as high as it likes.
    """
    model, bar = view.model(), view.horizontalScrollBar()
    row_height = view.verticalHeader().defaultSectionSize()
    rows = model.rowCount()
    frame = 2 * view.frameWidth() + view.horizontalHeader().sizeHint().height()
    if bar.maximum() > 0:
        frame += bar.sizeHint().height()
    if room is not None:
        rows = min(rows, max((room - frame) // row_height, _LEAST_ROWS))
    view.setFixedHeight(frame + row_height * rows)
