"""The table of runs: a row is chosen, looked at, sorted and copied there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QHeaderView, QMenu, QStyledItemDelegate, QStyleOptionViewItem

from gpu_studio.model.text_rows import DEVICE_ROLE, TextRows
from gpu_studio.ui.page_parts import fill_menu
from gpu_studio.ui.parts import Card, letters, show_whole_rows, table
from gpu_studio.ui.scroll_page import keep_row_in_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtCore import QObject, QPoint

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.benchmark.run_model import RunModel
    from gpu_studio.ui.theme import Theme

_LEAST_COLUMN = 10  # letters: "888 ms" and its square come during a run
_FITTED_ROWS = 40  # a thousand would hold the window


class BenchmarkResults(Card):
    """One row for each size; the page scrolls, not the table.

    A click on a median selects the run of that device, elsewhere in a row the latest one.

    Args:
        model: its sheet, and what is selected.
        theme: gives the colors.
        copies: the texts and actions that copy the table.
    """

    def __init__(
        self, model: RunModel, theme: Theme, copies: Sequence[tuple[str, Callable[[], object], str]]
    ) -> None:
        super().__init__()
        self.column.setContentsMargins(1, 1, 1, 8)
        self._model, self._copies = model, copies
        self._rows = TextRows((), parent=self, tip=model.tip_of)
        self._table = view = table(
            self._rows, name="benchmark.results", accessible_name="Results, one row per size"
        )
        self.column.addWidget(view)
        self.setFocusProxy(view)
        view.setItemDelegate(SwatchDelegate(theme, self))
        selection = view.selectionModel()
        selection.selectionChanged.connect(self._on_selection_changed)
        selection.currentColumnChanged.connect(self._on_selection_changed)
        header = view.horizontalHeader()
        header.setResizeContentsPrecision(_FITTED_ROWS)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setMinimumSectionSize(letters(view, _LEAST_COLUMN))
        header.setSectionsClickable(True)
        header.sectionClicked.connect(self._sort)
        self._menu = QMenu(view)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu)

    def show_sheet(self) -> None:
        """Show the present table, and select the row of the selected run."""
        sheet, selected = self._model.sheet, self._model.selected
        selection = self._table.selectionModel()
        with QSignalBlocker(selection):
            self._rows.set_rows(sheet.rows, sheet.head, sheet.numbers)
            current = selection.currentIndex() if selection.hasSelection() else QModelIndex()
            if self._run_at(current) is not selected:
                self._table.clearSelection()
                if selected is not None:
                    row = [selected in [one.value for one in row] for row in sheet.rows].index(True)
                    column = [one.value for one in sheet.rows[row]].index(selected)
                    self._table.setCurrentIndex(self._rows.index(row, column))
        show_whole_rows(self._table)

    def _run_at(self, index: QModelIndex) -> Run | None:
        return self._rows.cell(index.row(), index.column()).value if index.isValid() else None

    def _on_selection_changed(self) -> None:
        selection = self._table.selectionModel()
        index = selection.currentIndex() if selection.hasSelection() else QModelIndex()
        if index.isValid() and self._table.hasFocus():
            keep_row_in_view(self._table, index.row())
        if self._run_at(index) is not self._model.selected:
            self._model.select(self._run_at(index))

    def _sort(self, column: int) -> None:
        self._model.sort(self._rows.headerData(column, Qt.Orientation.Horizontal).rstrip(" ↑↓"))

    def _open_menu(self, place: QPoint) -> None:
        """Offer to sort and copy by the keyboard as well: the Menu key or Shift+F10."""
        fill_menu(self._menu, (None, *self._copies))
        sorting = QMenu("&Sort by", self._menu)
        orders = [
            (title.rstrip(" ↑↓"), partial(self._sort, at), f"benchmark.results.sort.{at}")
            for at, title in enumerate(self._model.sheet.head)
        ]
        order = ("Order of the runs", partial(self._model.sort, ""), "benchmark.results.sort.-1")
        fill_menu(sorting, (order, *orders))
        self._menu.insertMenu(self._menu.actions()[0], sorting)
        self._menu.popup(self._table.viewport().mapToGlobal(place))


SIDE = 12


def swatch(theme: Theme, role: str, scale: float = 1.0) -> QIcon:
    """Return the square of a device.

    Args:
        theme: gives the colors; a device's area color is the same in light and dark.
        role: the color.
        scale: device pixels per logical pixel.
    """
    picture = QPixmap(QSize(SIDE, SIDE) * scale)
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.colour(role)))
    painter.drawRoundedRect(QRectF(0, 0, SIDE, SIDE), 3, 3)
    painter.end()
    icon = QIcon()
    for mode in (QIcon.Mode.Normal, QIcon.Mode.Selected, QIcon.Mode.Disabled):
        icon.addPixmap(picture, mode)
    return icon


class SwatchDelegate(QStyledItemDelegate):
    """Shows the square of the device that a cell is about."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Add the square to the style option."""
        super().initStyleOption(option, index)
        address = index.data(DEVICE_ROLE)
        if not address:
            return
        scale = option.widget.devicePixelRatioF() if option.widget else 1.0
        option.icon = swatch(self._theme, self._theme.device_role(address), scale)
        option.decorationSize = QSize(SIDE, SIDE)
        option.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
