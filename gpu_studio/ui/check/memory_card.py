"""The map of the memory that a check tested, and the check's findings, side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolTip, QVBoxLayout, QWidget

from gpu_studio.core.check.memory_map import MemoryMap
from gpu_studio.core.check.record_words import (
    FINDING_TONES,
    breakable,
    coverage_share,
    coverage_text,
)
from gpu_studio.core.notice import Tone
from gpu_studio.core.units import format_percent
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Card, Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.check.memory_map import SquareState
    from gpu_studio.core.check.record_words import GroupedFinding
    from gpu_studio.core.messages.check_messages import MemoryCoverage
    from gpu_studio.ui.theme import Theme

_FEW_COLUMNS = 12
_SQUARE = 0.86  # of the distance of two
_ROLES: dict[SquareState, str] = {
    "good": "allocated", "bad": "failure", "waiting": "disabled", "untested": "track",
}  # fmt: skip
_SIGNS = {
    Tone.FAILURE: ("warning", "failure_ink"),
    Tone.AMBER: ("warning", "amber"),
    Tone.PLAIN: ("info", "muted"),
}


class MemoryCard(Card):
    """The tested memory in squares; hidden if none was tested."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.memory")
        self.view = MapView(theme)
        self._coverage = Text("", "muted", name="check.coverage", wraps=True)
        self._caption = Text("", "muted", name="check.memory.caption", wraps=True)
        self.column.addWidget(Text("Memory", "title"))
        self.column.addWidget(self._coverage)
        self.column.addWidget(self.view)
        self.column.addWidget(self._caption)
        self.column.addStretch(1)

    def show_memory(self, memory: MemoryMap | None, coverage: MemoryCoverage | None) -> None:
        """Show a map and how much it covers."""
        self.setVisible(memory is not None)
        if memory is None or coverage is None:
            return
        share = format_percent(coverage_share(coverage))
        bad = f"{len(memory.bad)} bad of {len(memory.squares)} squares. " if memory.bad else ""
        self._coverage.setText(f"{bad}{coverage_text(coverage)}, {share}")
        self._coverage.set_tone(Tone.FAILURE if bad else Tone.PLAIN)
        self._caption.setText(memory.caption)
        self.view.show_memory(memory)


class MapView(QWidget):
    """The squares; the mouse shows what is known of one.

    Attributes:
        memory: what is drawn.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("check.map")
        self.setAccessibleName("Map of the tested memory")
        self.memory = MemoryMap(1, ())
        self._theme = theme
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def show_memory(self, memory: MemoryMap) -> None:
        """Show another map."""
        if memory != self.memory:
            if len(memory.squares) != len(self.memory.squares):
                self.updateGeometry()
            self.memory = memory
            self.setAccessibleDescription(memory.caption)
            self.update()

    def sizeHint(self) -> QSize:
        """Return the size of a map about three times as wide as high."""
        width = round(self._pitch * max(math.sqrt(3 * len(self.memory.squares)), _FEW_COLUMNS))
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """Return room for a few squares; the height follows from the width."""
        return QSize(round(_FEW_COLUMNS * self._pitch), round(self._pitch))

    def heightForWidth(self, width: int) -> int:
        """Return the height of all squares, in pixels."""
        rows = -(-len(self.memory.squares) // self._columns(width))
        return math.ceil(rows * self._pitch)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the squares; a bad one has a cross."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = _SQUARE * self._pitch
        for number, square in enumerate(self.memory.squares):
            row, column = divmod(number, self._columns(self.width()))
            place = QRectF(column * self._pitch, row * self._pitch, side, side)
            painter.fillRect(place, QColor(self._theme.colour(_ROLES[square.state])))
            if square.state == "bad":
                inner = place.adjusted(side / 4, side / 4, -side / 4, -side / 4)
                painter.setPen(QColor(self._theme.colour("card")))
                painter.drawLine(QLineF(inner.topLeft(), inner.bottomRight()))
                painter.drawLine(QLineF(inner.bottomLeft(), inner.topRight()))

    def event(self, event: QEvent) -> bool:
        """Show what is known of the square under the mouse."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            tip = self.tip_at(event.pos().x(), event.pos().y())
            QToolTip.showText(event.globalPos(), plain_tip(tip) if tip else "", self)
            return True
        return super().event(event)

    def tip_at(self, x: float, y: float) -> str:
        """Return what is known of the square at a place; empty beside the squares."""
        column, row, columns = x // self._pitch, y // self._pitch, self._columns(self.width())
        number = int(row * columns + column) if 0 <= column < columns and row >= 0 else -1
        squares = self.memory.squares
        return self.memory.tip(squares[number]) if 0 <= number < len(squares) else ""

    @property
    def _pitch(self) -> float:
        """The distance of two squares: most of a line of text."""
        return QFontMetricsF(self.font()).height() / 1.25

    def _columns(self, width: int) -> int:
        return max(int(width / self._pitch), 1)


class CheckFindings(Card):
    """A line for each kind of finding, the worst first; hidden without any."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.findings")
        self._theme = theme
        self._lines: tuple[GroupedFinding, ...] = ()
        self._rows: list[tuple[QWidget, QLabel, Text]] = []
        self.column.addWidget(Text("Findings", "title"))
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        self.column.addLayout(self._list)
        self.column.addStretch(1)
        theme.changed.connect(self._paint_signs)

    def show_lines(self, lines: Sequence[GroupedFinding]) -> None:
        """Show these findings."""
        self._lines = tuple(lines)
        self.setVisible(bool(lines))
        while len(self._rows) < len(lines):
            self._add_row()
        for number, (row, _, words) in enumerate(self._rows):
            row.setVisible(number < len(lines))
            line = lines[number] if number < len(lines) else None
            words.setText(breakable(line.sentence) if line is not None else "")
            if line is not None:
                words.set_tone(FINDING_TONES[line.severity])
                words.setToolTip(plain_tip("\n".join(line.details)))
        self._paint_signs()

    def _add_row(self) -> None:
        row, sign = QWidget(), QLabel()
        words = Text("", name=f"check.findings.{len(self._rows)}", wraps=True)
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        line.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        line.addWidget(words, 1)
        self._list.addWidget(row)
        self._rows.append((row, sign, words))

    def _paint_signs(self) -> None:
        side = self.fontMetrics().height()
        for (_, sign, _words), line in zip(self._rows, self._lines, strict=False):
            name, role = _SIGNS[FINDING_TONES[line.severity]]
            drawn = icon(name, self._theme, role)
            sign.setPixmap(drawn.pixmap(QSize(side, side), self.devicePixelRatioF()))
