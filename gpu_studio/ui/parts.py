"""The small parts every tab is made of: cards, labels and buttons that name a role of the theme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTableView,
    QVBoxLayout,
    QWidget,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtCore import QAbstractItemModel

GAP = 10
MARGIN = 14
Role = Literal["headline", "title", "value", "section", "muted", "failure", "amber", "good", ""]

_LEAST_ROWS = 2  # fewer are no table: then the others are scrolled to


class Card(QFrame):
    """A bordered box with a vertical layout."""

    def __init__(self, parent: QWidget | None = None, *, name: str = "") -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setProperty("card", True)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(MARGIN, 12, MARGIN, 12)
        self.column.setSpacing(6)

    def set_tone(self, tone: Literal["", "good", "amber", "failure"]) -> None:
        """Colour the border; the text must say it too."""
        set_property(self, "tone", tone)


class Text(QLabel):
    """A label that shows its text as it is: names from outside are never read as HTML."""

    def __init__(
        self, text: str = "", role: Role = "", *, name: str = "", wraps: bool = False
    ) -> None:
        super().__init__(text)
        self.setObjectName(name)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", role)
        self.setWordWrap(wraps)
        if wraps:
            self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def set_role(self, role: Role) -> None:
        """Change the role."""
        set_property(self, "role", role)


def button(
    text: str,
    clicked: Callable[[], object],
    *,
    name: str = "",
    tip: str = "",
    primary: bool = False,
) -> QPushButton:
    """Return a push button; ``clicked`` is a method of a QObject of the window's thread."""
    made = QPushButton(text)
    made.setObjectName(name)
    made.setToolTip(tip)
    made.setAccessibleName(text)
    made.setAccessibleDescription(tip)
    made.setProperty("primary", primary)
    made.clicked.connect(clicked)
    return made


def section(text: str) -> Text:
    """Return the small heading over a group of controls."""
    return Text(text.upper(), "section")


def add_row(
    column: QBoxLayout, *widgets: QWidget, spacing: int = 8, stretch_last: bool = False
) -> QHBoxLayout:
    """Add widgets side by side to a column, pushed to the left unless the last one stretches.

    The row is handed over while it is empty: PySide 6.10 and 6.11 crash later if it is filled
    (docs/pyside-layout-wrappers.md).
    """
    line = QHBoxLayout()
    line.setSpacing(spacing)
    column.addLayout(line)
    for widget in widgets:
        line.addWidget(widget)
    if stretch_last:
        line.setStretch(len(widgets) - 1, 1)
    else:
        line.addStretch(1)
    return line


def table(model: QAbstractItemModel, *, name: str, accessible_name: str) -> QTableView:
    """Return a calm table: rows are selected whole, columns fit their contents."""
    view = QTableView()
    view.setObjectName(name)
    view.setAccessibleName(accessible_name)
    view.setModel(model)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setShowGrid(False)
    view.setWordWrap(False)
    view.setTabKeyNavigation(False)
    view.verticalHeader().hide()
    view.verticalHeader().setDefaultSectionSize(30)
    header = view.horizontalHeader()
    header.setHighlightSections(False)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setStretchLastSection(True)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    return view


def set_property(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet looks at, and let it look again."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


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
