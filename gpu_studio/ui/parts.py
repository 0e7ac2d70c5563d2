"""The small parts of every tab: cards, labels, buttons and tables with roles of the theme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QHelpEvent, QKeySequence, QShortcut
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

from gpu_studio.core.texts import markdown_table
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.theme import HERO_SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtCore import QAbstractItemModel
    from PySide6.QtGui import QKeyEvent

    from gpu_studio.core.notice import Notice, Tone

GAP = 10
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
MARGIN = 14
SCROLL_BAR = 10  # pixels that every page keeps for it, as the theme's style sheet has it
Role = Literal[
    "hero", "hero_words", "headline", "title", "lead", "value", "section", "muted", "failure",
    "amber", "good", "",
]  # fmt: skip

# What presses the buttons of a page, by what they do; the first is named to the user.
KEYS = {"run": ("Ctrl+Return", "Ctrl+Enter"), "stop": ("Esc",), "save": ("Ctrl+S",)}
_ROW_PADDING = 15


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
        text = self.text()
        fitting = (role for role in roles if _metrics_in(role).horizontalAdvance(text) <= room)
        self.set_role(next(fitting, roles[-1]))

    def room_for(self, roles: Sequence[Role]) -> int:
        """Return the height that any text in one of these roles needs, two lines in the last."""
        large, small = (_metrics_in(role).lineSpacing() for role in (roles[0], roles[-1]))
        return max(large, 2 * small) + 2

    def set_tone(self, tone: Tone) -> None:
        """Color the text in any role; the words must say the same."""
        set_property(self, "tone", tone.value)

    def show_notice(self, notice: Notice) -> None:
        """Show a notice's sentence in its tone; without a sentence, hide."""
        self.set_tone(notice.tone)
        self.setText(notice.sentence)
        self.setVisible(bool(notice.sentence))


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


def press_by_key(pressed: QPushButton, does: str) -> None:
    """Let the key for what a button does press it while it can be pressed, and name the key."""
    shortcut = QShortcut(QKeySequence(), pressed)
    shortcut.setKeys([QKeySequence(key) for key in KEYS[does]])
    shortcut.activated.connect(pressed.click)
    pressed.setToolTip(with_key(pressed.toolTip(), does))


def with_key(tip: str, does: str) -> str:
    """Return a tool tip with the key for what a button does, as this system writes it."""
    words = QKeySequence(KEYS[does][0]).toString(QKeySequence.SequenceFormat.NativeText)
    return f"{tip} ({words})".lstrip()


def show_label(shown: QPushButton, text: str) -> None:
    """Show a button under a name; without one, hide it."""
    if text:
        shown.setText(text)
        shown.setAccessibleName(text)
    shown.setVisible(bool(text))


def resize_on_screen(window: QWidget, size: tuple[int, int]) -> None:
    """Give a window its first size, or what a small screen has room for."""
    window.resize(QSize(*size).boundedTo(window.screen().availableSize()))


def letters(widget: QWidget, count: int) -> int:
    """Return the width of a number of lower-case letters in a widget's font, in pixels."""
    return round(count * widget.fontMetrics().horizontalAdvance(_ALPHABET) / len(_ALPHABET))


def discard(widget: QWidget) -> None:
    """Delete a widget whose successor may have its name: it outlives this turn."""
    widget.hide()
    for one in (widget, *widget.findChildren(QWidget)):
        one.setObjectName("")
    widget.deleteLater()


def section(text: str) -> Text:
    """Return the small heading above a group of controls."""
    return Text(text.upper(), "section")


def show_tip(widget: QWidget, tip: str) -> None:
    """Give a widget a tool tip, which a screen reader reads as well."""
    widget.setToolTip(plain_tip(tip))
    widget.setAccessibleDescription(tip)


class Table(QTableView):
    """A table that shows the full text of a cut-off cell in a tool tip.

    Ctrl+C copies the selected rows as Markdown.
    """

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the selected rows."""
        if not event.matches(QKeySequence.StandardKey.Copy):
            super().keyPressEvent(event)
            return
        model, columns = self.model(), range(self.model().columnCount())
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        head = [str(model.headerData(at, Qt.Orientation.Horizontal)) for at in columns]
        cells = [[str(model.index(row, at).data()) for at in columns] for row in rows]
        QApplication.clipboard().setText(markdown_table([head, *cells]))

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the full text of a cut-off cell."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            index = self.indexAt(event.pos())
            if index.isValid() and not index.data(Qt.ItemDataRole.ToolTipRole):
                is_cut = self.sizeHintForIndex(index).width() > self.columnWidth(index.column())
                text = plain_tip(str(index.data())) if is_cut else ""
                QToolTip.showText(event.globalPos(), text, self)
                return True
        return super().viewportEvent(event)


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


def height_of_rows(view: QTableView, rows: int | None = None) -> int:
    """Return the height of a table that shows a number of complete rows, or all, in pixels."""
    bar = view.horizontalScrollBar()
    frame = 2 * view.frameWidth() + view.horizontalHeader().sizeHint().height()
    if bar.maximum() > 0:
        frame += bar.sizeHint().height()
    rows = view.model().rowCount() if rows is None else rows
    return frame + view.verticalHeader().defaultSectionSize() * rows


def show_whole_rows(view: QTableView) -> None:
    """Make a table as high as its rows."""
    view.setFixedHeight(height_of_rows(view))
