"""The small parts of every tab: cards, labels, buttons and tables with roles of the theme."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QHelpEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QFrame,
    QHeaderView,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTableView,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.theme import HERO_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from PySide6.QtCore import QAbstractItemModel
    from PySide6.QtGui import QShowEvent

    from gpu_studio.core.notice import Notice, Tone

GAP = 10
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
MARGIN = 14
SCROLL_BAR = 10  # pixels that every page keeps for it, as the theme's style sheet has it
Role = Literal[
    "hero", "hero_words", "headline", "title", "lead", "value", "section", "muted", "failure",
    "amber", "good", "",
]  # fmt: skip

_ROW_PADDING = 15
_LEAST_ROWS = 2  # fewer rows are no table: the others are reached by scrolling


class Card(QFrame):
    """A bordered box with a vertical layout."""

    def __init__(self, parent: QWidget | None = None, *, name: str = "") -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setProperty("card", True)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(MARGIN, 12, MARGIN, 12)
        self.column.setSpacing(6)

    def set_tone(self, tone: Tone) -> None:
        """Color the border; the text must say the same."""
        set_property(self, "tone", tone.value)


def _metrics_in(role: Role) -> QFontMetrics:
    size, weight = HERO_SIZES[role]
    font = QFont(QApplication.font())
    font.setPointSizeF(font.pointSizeF() * size)
    font.setWeight(QFont.Weight(weight))
    return QFontMetrics(font)


class Text(QLabel):
    """A label that shows plain text: names from outside are never read as HTML."""

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

    def fit_role(self, roles: Sequence[Role], room: int) -> None:
        """Take the first of some hero roles in which the text is at most ``room`` pixels wide.

        The last role is taken if the text is too wide in all of them.
        """
        fitting = (role for role in roles if self._width_in(role) <= room)
        self.set_role(next(fitting, roles[-1]))

    def room_for(self, roles: Sequence[Role]) -> int:
        """Return the height that any text in one of these roles needs, two lines in the last."""
        large, small = (_metrics_in(role).lineSpacing() for role in (roles[0], roles[-1]))
        return max(large, 2 * small) + 2

    def _width_in(self, role: Role) -> int:
        return _metrics_in(role).horizontalAdvance(self.text())

    def set_tone(self, tone: Tone) -> None:
        """Color the text in any role; the words must say the same."""
        set_property(self, "tone", tone.value)

    def show_text(self, text: str) -> None:
        """Show a text; without one, hide."""
        self.setText(text)
        self.setVisible(bool(text))

    def show_notice(self, notice: Notice) -> None:
        """Show a notice's sentence in its tone; without a sentence, hide."""
        self.set_tone(notice.tone)
        self.show_text(notice.sentence)


def button(
    text: str,
    clicked: Callable[[], object],
    *,
    name: str = "",
    tip: str = "",
    primary: bool = False,
) -> QPushButton:
    """Return a push button; ``clicked`` is a method of a QObject of the window's thread."""
    widget = QPushButton(text)
    widget.setObjectName(name)
    widget.setToolTip(tip)
    widget.setAccessibleName(text)
    widget.setAccessibleDescription(tip)
    widget.setProperty("primary", primary)
    widget.clicked.connect(clicked)
    return widget


def show_label(shown: QPushButton, text: str) -> None:
    """Show a button under a name; without one, hide it."""
    if text:
        shown.setText(text)
        shown.setAccessibleName(text)
    shown.setVisible(bool(text))


def resize_on_screen(window: QWidget, size: tuple[int, int]) -> None:
    """Give a window its first size, or what a small screen has room for."""
    window.resize(QSize(*size).boundedTo(window.screen().availableSize()))


def keep_room(*widgets: QWidget) -> None:
    """Keep the place of widgets that are hidden: nothing moves under the pointer when they come."""
    for widget in widgets:
        policy = widget.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        widget.setSizePolicy(policy)


@contextlib.contextmanager
def laid_out_once(page: QWidget) -> Iterator[None]:
    """Lay a page out once after many changes.

    Qt lays out all that is around a widget at once whenever one comes: a page with five new cards
    five times.
    """
    layout = page.layout()
    was_enabled = layout is not None and layout.isEnabled()
    if layout is not None:
        layout.setEnabled(False)  # the layout that Qt has posted meanwhile comes after this
    try:
        yield
    finally:
        if layout is not None:
            layout.setEnabled(was_enabled)


def letters(widget: QWidget, count: int) -> int:
    """Return the width of a number of lower-case letters in a widget's font, in pixels."""
    return round(count * widget.fontMetrics().horizontalAdvance(_ALPHABET) / len(_ALPHABET))


def rule() -> QFrame:
    """Return a thin line across a card."""
    widget = QFrame()
    widget.setProperty("rule", True)
    widget.setFixedHeight(1)
    return widget


def without_mnemonic(text: str) -> str:
    """Return a text for a button or a box that has no mnemonic: a single & would be one."""
    return text.replace("&", "&&")


def section(text: str) -> Text:
    """Return the small heading above a group of controls."""
    return Text(text.upper(), "section")


def show_tip(widget: QWidget, tip: str) -> None:
    """Give a widget a tool tip, which a screen reader reads as well."""
    widget.setToolTip(plain_tip(tip))
    widget.setAccessibleDescription(tip)


class Table(QTableView):
    """A table that shows the full text of a cut-off cell or heading in a tool tip."""

    def showEvent(self, event: QShowEvent) -> None:
        """Watch the headings: a hidden table before the first paint needs no viewport of Qt."""
        super().showEvent(event)
        self.horizontalHeader().viewport().installEventFilter(self)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the full text of a cut-off cell."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            index = self.indexAt(event.pos())
            if index.isValid() and not index.data(Qt.ItemDataRole.ToolTipRole):
                is_cut = self.sizeHintForIndex(index).width() > self.columnWidth(index.column())
                return _show_tip(event, str(index.data()) if is_cut else "", self)
        return super().viewportEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the full text of a cut-off heading."""
        header = self.horizontalHeader()
        is_tip = event.type() is QEvent.Type.ToolTip and watched is header.viewport()
        if is_tip and isinstance(event, QHelpEvent):
            section = header.logicalIndexAt(event.pos())
            roles = Qt.ItemDataRole
            shown = {
                role: self.model().headerData(section, Qt.Orientation.Horizontal, role)
                for role in (roles.DisplayRole, roles.ToolTipRole)
            }
            is_cut = header.sectionSizeHint(section) > header.sectionSize(section)
            if is_cut and not shown[roles.ToolTipRole]:
                return _show_tip(event, str(shown[roles.DisplayRole]), self)
        return super().eventFilter(watched, event)


def _show_tip(event: QHelpEvent, text: str, widget: QWidget) -> bool:
    QToolTip.showText(event.globalPos(), plain_tip(text) if text else "", widget)
    return True


def table(model: QAbstractItemModel, *, name: str, accessible_name: str) -> QTableView:
    """Return a plain table: it selects whole rows, and its columns fit their contents."""
    view = Table()
    view.setObjectName(name)
    view.setAccessibleName(accessible_name)
    view.setModel(model)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    view.setShowGrid(False)
    view.setWordWrap(False)
    view.setTabKeyNavigation(False)
    view.verticalHeader().hide()
    view.verticalHeader().setDefaultSectionSize(view.fontMetrics().height() + _ROW_PADDING)
    header = view.horizontalHeader()
    header.setHighlightSections(False)
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setStretchLastSection(True)
    header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    return view


def set_property(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet uses, and restyle a widget that has its style."""
    before = widget.property(name)
    if before == value or (before is None and value == ""):
        return
    widget.setProperty(name, value)
    if widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def height_of_rows(view: QTableView, rows: int | None = None, width: int | None = None) -> int:
    """Return the height of a table that shows a number of complete rows, in pixels.

    Args:
        view: a table whose rows have the same height.
        rows: the number of rows; None for all.
        width: the future width of the table, in pixels; None for the current width.
    """
    bar = view.horizontalScrollBar()
    frame = 2 * view.frameWidth() + view.horizontalHeader().sizeHint().height()
    if bar.maximum() > 0 if width is None else _needs_bar(view, width):
        frame += bar.sizeHint().height()
    rows = view.model().rowCount() if rows is None else rows
    return frame + view.verticalHeader().defaultSectionSize() * rows


def _needs_bar(view: QTableView, width: int) -> bool:
    """Return whether columns that fit their contents exceed a width in total."""
    header = view.horizontalHeader()
    # The last column takes the remaining width.
    columns = [c for c in range(view.model().columnCount()) if not view.isColumnHidden(c)][:-1]
    wanted = [max(view.sizeHintForColumn(c), header.sectionSizeHint(c)) for c in columns]
    return sum(wanted) + header.minimumSectionSize() > width - 2 * view.frameWidth()


def show_whole_rows(view: QTableView, room: int | None = None, *, width: int | None = None) -> None:
    """Fit a table's height to its rows, or to the rows that fit.

    Args:
        view: a table whose rows have the same height.
        room: the largest height, in pixels; None for no limit. If there is less room later, the
            table can shrink to a few rows.
        width: the future width, in pixels; None for the current width.
    """
    rows = view.model().rowCount()
    if room is None:
        view.setFixedHeight(height_of_rows(view, rows, width))
        return
    least = min(rows, _LEAST_ROWS)
    fitting = (room - height_of_rows(view, 0, width)) // view.verticalHeader().defaultSectionSize()
    view.setSizeAdjustPolicy(view.SizeAdjustPolicy.AdjustToContents)
    view.setMinimumHeight(height_of_rows(view, least, width))
    view.setMaximumHeight(height_of_rows(view, max(min(rows, fitting), least), width))
