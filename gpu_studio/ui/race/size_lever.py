"""The one lever of a race: how large its picture is, from tiny to large."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRect, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from gpu_studio.ui.page_controls import Slider
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from gpu_studio.ui.theme import Theme

_MARK = 3  # pixels


class SizeMark(NamedTuple):
    """A position of the lever.

    Attributes:
        size: the size that it stands for.
        text: the size as it is written under the lever.
        leader: the contestant that is faster at this size; empty while nobody raced.
        role: that contestant's color.
    """

    size: int
    text: str
    leader: str = ""
    role: str = ""


class SizeLever(QWidget):
    """A slider over a few sizes, each marked in the color of its leader.

    Signals:
        chosen(int): the user moved the lever to this size.

    Attributes:
        slider: the lever itself.
        marks: its positions, from small to large.
    """

    chosen = Signal(int)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.marks: tuple[SizeMark, ...] = ()
        self._labels: list[Text] = []
        self.slider = Slider(Qt.Orientation.Horizontal)
        self.slider.setObjectName(name)
        self.slider.setAccessibleName("Size of the picture")
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(self._on_value_changed)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(0)
        self._grid.setVerticalSpacing(_MARK)
        theme.changed.connect(self.update)

    def show_sizes(self, marks: Sequence[SizeMark], chosen: int) -> None:
        """Show these positions, with the lever at one size; emits no signal."""
        if len(marks) != len(self._labels):
            self._make_labels(len(marks))
        self.marks = tuple(marks)
        sizes = [mark.size for mark in marks]
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, len(marks) - 1)
            self.slider.setValue(sizes.index(chosen) if chosen in sizes else 0)
        for label, mark in zip(self._labels, marks, strict=True):
            label.setText(mark.text)
            label.set_role("" if mark.size == chosen else "muted")
            label.setToolTip(f"{mark.leader} is faster here" if mark.leader else "")
        self.slider.setAccessibleDescription(
            ", ".join(filter(None, (self.marks[self.slider.value()].text, *map(_words, marks))))
        )
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Mark each size in the color of its leader."""
        painter = QPainter(self)
        for label, mark in zip(self._labels, self.marks, strict=True):
            if mark.role:
                place = QRect(label.x() + 1, label.y() - _MARK, label.width() - 2, _MARK)
                painter.fillRect(place, QColor(self._theme.colour(mark.role)))

    def _make_labels(self, count: int) -> None:
        """Put a label under each position: each has two columns, and the lever ends in middles."""
        for label in self._labels:
            self._grid.removeWidget(label)
            label.hide()
            label.deleteLater()
        self._grid.removeWidget(self.slider)
        self._labels = []
        for column in range(max(2 * count, self._grid.columnCount())):
            self._grid.setColumnStretch(column, int(column < 2 * count))
        self._grid.addWidget(self.slider, 0, 1, 1, max(2 * count - 2, 1))
        for index in range(count):
            label = Text("", "muted")
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            self._grid.addWidget(label, 1, 2 * index, 1, 2)
            self._labels.append(label)

    def _on_value_changed(self, place: int) -> None:
        self.chosen.emit(self.marks[place].size)


def _words(mark: SizeMark) -> str:
    return f"{mark.leader} is faster at {mark.text}" if mark.leader else ""
