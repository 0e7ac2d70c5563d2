"""Tables of plain text, for the numbers of a chart.

Tool tips with text from outside, such as the name of a device or of a tensor in a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from PySide6.QtCore import QObject


_NO_PARENT = QModelIndex()
DEVICE_ROLE = Qt.ItemDataRole.UserRole
"""The address of the device that a cell is about, for its color; empty for none."""


class Cell(NamedTuple):
    """A text of a table.

    ``device`` is the address of the device whose color stands before it, ``value`` what is meant by
    the cell.
    """

    text: str
    device: str = ""
    value: Any = None


class TextRows(QAbstractTableModel):
    """Text cells with column headers; columns of numbers are right-aligned.

    Args:
        head: the column headers.
        numbers: the indexes of the columns with numbers.
        parent: owns it.
        tip: returns the tool tip of what is meant by a cell.
    """

    def __init__(
        self, head: Sequence[str], numbers: Sequence[int] = (), parent: QObject | None = None,
        tip: Callable[[Any], str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._head, self._numbers = tuple(head), frozenset(numbers)
        self._rows: list[tuple[str | Cell, ...]] = []
        self._tip = tip

    def cell(self, row: int, column: int) -> Cell:
        """Return a cell."""
        found = self._rows[row][column]
        return Cell(found) if isinstance(found, str) else found

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of rows."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex = _NO_PARENT) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self._head)

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        """Return a cell's text, alignment or device, or the tool tip of what it means."""
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return self._alignment(index.column())
        cell = self.cell(index.row(), index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return cell.text
        if role == DEVICE_ROLE:
            return cell.device
        if role == Qt.ItemDataRole.ToolTipRole and self._tip is not None:
            return self._tip(cell.value)
        return None

    def set_rows(
        self, rows: Sequence[tuple[str | Cell, ...]], head: Sequence[str] | None = None,
        numbers: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Show other rows; if their number is the same, selection and scroll position stay.

        Args:
            rows: the texts of the cells, or the cells.
            head: other column headers; None: the same.
            numbers: the columns with numbers among them.
        """
        is_same_head = head is None or tuple(head) == self._head
        if is_same_head and len(rows) == len(self._rows):
            pairs = enumerate(zip(self._rows, rows, strict=True))
            changed = [number for number, (before, now) in pairs if before != now]
            self._rows = list(rows)
            if changed:
                last = self.index(changed[-1], self.columnCount() - 1)
                self.dataChanged.emit(self.index(changed[0], 0), last)
            return
        self.beginResetModel()
        self._rows = list(rows)
        if head is not None:
            self._head, self._numbers = tuple(head), frozenset(numbers)
        self.endResetModel()

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a column's name or its alignment."""
        if orientation is Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return self._head[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return self._alignment(section)
        return None

    def _alignment(self, column: int) -> Qt.AlignmentFlag:
        flags = Qt.AlignmentFlag
        return flags.AlignVCenter | (
            flags.AlignRight if column in self._numbers else flags.AlignLeft
        )


def plain_tip(text: str) -> str:
    """Return a text that Qt's tool tips show unchanged; labels have a text format instead.

    A tool tip is read as HTML if `Qt::mightBeRichText` finds a tag or ``&lt;`` in it
    (https://doc.qt.io/qt-6/qt.html#mightBeRichText); only such a text is escaped.
    """
    if "<" not in text and "&lt;" not in text:
        return text
    return rich_tip(text.splitlines())


def rich_tip(lines: Iterable[str]) -> str:
    """Return lines of plain text as Qt's HTML, so that the tool tip wraps long ones."""
    import html  # 2 ms

    return f"<qt>{'<br>'.join(map(html.escape, lines))}</qt>"
