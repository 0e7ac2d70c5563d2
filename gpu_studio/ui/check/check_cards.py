"""The cards of the Check tab: rows of words, a check that was cut off, and the tested memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from gpu_studio.core.check.memory_map import MemoryMap
from gpu_studio.core.check.record_words import breakable, coverage_text
from gpu_studio.core.notice import Tone
from gpu_studio.model.check import check_words
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.check.memory_map import SquareState
    from gpu_studio.core.messages.check_messages import MemoryCoverage
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.ui.theme import Theme

_FEW_COLUMNS = 12
_SQUARE = 0.86  # of the distance of two
_ROLES: dict[SquareState, str] = {
    "good": "allocated", "bad": "failure", "waiting": "disabled", "untested": "track",
}  # fmt: skip


class Row(NamedTuple):
    """A line of a card: a quiet title, and words that wrap; ``tip`` says more about them."""

    title: str
    tone: Tone
    words: str
    tip: str = ""


class RowCard(Card):
    """Rows under a title; hidden without any. The words of row 2 are the label ``NAME.2``."""

    def __init__(self, title: str, *, name: str) -> None:
        super().__init__(name=name)
        self.column.addWidget(Text(title, "title"))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(2 * GAP)
        self._grid.setColumnStretch(1, 1)
        self.column.addLayout(self._grid)
        self._labels: list[tuple[Text, Text]] = []

    def show_rows(self, rows: Iterable[tuple[str, str] | Row]) -> None:
        """Show these rows, or these titles and words."""
        shown = [row if isinstance(row, Row) else Row(row[0], Tone.PLAIN, row[1]) for row in rows]
        self.setVisible(bool(shown))
        while len(self._labels) < len(shown):
            number = len(self._labels)
            pair = (Text("", "muted"), Text("", name=f"{self.objectName()}.{number}", wraps=True))
            for column, label in enumerate(pair):
                self._grid.addWidget(label, number, column, Qt.AlignmentFlag.AlignTop)
            self._labels.append(pair)
        for number, (title, words) in enumerate(self._labels):
            row = shown[number] if number < len(shown) else Row("", Tone.PLAIN, "")
            title.setText(breakable(row.title))
            words.setText(breakable(row.words))
            words.set_tone(row.tone)
            words.setToolTip(plain_tip(row.tip) if row.tip else "")
            title.setVisible(number < len(shown))
            words.setVisible(number < len(shown))


class CutOffCard(Card):
    """A check that was cut off by a crash or a restart: continue it, or keep it as a result."""

    def __init__(self, check: CardCheck) -> None:
        super().__init__(name="check.cut_off")
        self._check = check
        self._text = Text("", "value", name="check.cut_off.text", wraps=True)
        self._resume = button(
            "Continue check", check.resume, name="check.resume",
            tip="Run the stages that are not finished; the interruption stays in the record",
        )  # fmt: skip
        conclude = button(
            "Keep as result", check.conclude, name="check.conclude",
            tip="End the check with the results so far",
        )  # fmt: skip
        self.column.addWidget(self._text)
        self.column.addWidget(FlowRow(self._resume, conclude))
        self.set_tone(Tone.AMBER)

    def show_check(self) -> None:
        """Show the last check that was cut off, if there is one."""
        cut_off = self._check.cut_off
        self.setVisible(cut_off is not None)
        if cut_off is not None:
            self._text.setText(check_words.cut_off_text(cut_off))
            self._resume.setVisible(cut_off.can_continue)
            self._resume.setEnabled(self._check.can_resume)


class MemoryCard(Card):
    """The tested memory in squares; hidden if none was tested."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="check.memory")
        self.view = MapView(theme)
        self._coverage = Text("", "muted", name="check.coverage", wraps=True)
        self._caption = Text("", "muted", name="check.memory.caption", wraps=True)
        self.column.addWidget(Text("Memory", "title"))
        for part in (self._coverage, self.view, self._caption):
            self.column.addWidget(part)

    def show_memory(self, memory: MemoryMap | None, coverage: MemoryCoverage | None) -> None:
        """Show a map and how much it covers."""
        self.setVisible(memory is not None)
        if memory is None or coverage is None:
            return
        self._coverage.setText(coverage_text(coverage))
        self._caption.setText(memory.caption)
        self._caption.set_tone(Tone.FAILURE if memory.bad else Tone.PLAIN)
        self.view.show_memory(memory)


class MapView(QWidget):
    """The squares of a map.

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
        self.memory = memory
        self.setAccessibleDescription(memory.caption)
        self.updateGeometry()
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
        painter.setPen(QColor(self._theme.colour("card")))
        side = _SQUARE * self._pitch
        for number, state in enumerate(self.memory.squares):
            row, column = divmod(number, self._columns(self.width()))
            place = QRectF(column * self._pitch, row * self._pitch, side, side)
            painter.fillRect(place, QColor(self._theme.colour(_ROLES[state])))
            if state == "bad":
                inner = place.adjusted(side / 4, side / 4, -side / 4, -side / 4)
                painter.drawLine(QLineF(inner.topLeft(), inner.bottomRight()))
                painter.drawLine(QLineF(inner.bottomLeft(), inner.topRight()))

    @property
    def _pitch(self) -> float:
        """The distance of two squares: most of a line of text."""
        return QFontMetricsF(self.font()).height() / 1.25

    def _columns(self, width: int) -> int:
        return max(int(width / self._pitch), 1)
