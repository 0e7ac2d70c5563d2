"""The tank: one custom-painted bar whose parts add up to the device's memory.

Color, hatching and the names under the bar tell the parts apart. The arrow keys and the mouse show
each part's size and meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu_studio.core.units import format_bytes, format_percent

if TYPE_CHECKING:
    from PySide6.QtGui import (
        QFocusEvent,
        QFontMetrics,
        QKeyEvent,
        QMouseEvent,
        QPaintEvent,
        QResizeEvent,
    )

    from gpu_studio.core.memory.tank import Tank, TankPart
    from gpu_studio.ui.theme import Theme

# key of a part: (color role, pattern).
_LOOKS = {
    "driver": ("disabled", "solid"),
    "others": ("other", "solid"),
    "not_told": ("other", "hatched"),
    "other_engine": ("gpu0", "solid"),
    "context": ("context", "solid"),
    "engine": ("cpu", "solid"),
    "tensors": ("allocated", "solid"),
    "holes": ("allocated", "hatched"),
    "gradients": ("gpu0", "solid"),
    "masters": ("gpu0", "hatched"),
    "moments": ("gpu1", "solid"),
    "step": ("gpu1", "hatched"),
    "cache": ("gpu0", "solid"),
    "activations": ("allocated", "hatched"),
    "free": ("other", "empty"),
}

BAR_HEIGHT = 34
SWATCH = 10
_BETWEEN = 2.0
_LEAST_WIDTH = 3.0  # keeps a part of a few MiB visible and clickable
_LABEL_GAP = 18.0
_LINE_GAP = 4


class TankBar(QWidget):
    """The bar, with the names and sizes of its parts under it.

    Signals:
        part_described(str): name, size and meaning of the part under the mouse or the keyboard;
            empty for none.

    Attributes:
        tank: the shown tank.
    """

    part_described = Signal(str)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme = theme
        self.tank: Tank | None = None
        self._current = -1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName("Memory use")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_tank(self, tank: Tank | None) -> None:
        """Show another tank."""
        if tank == self.tank:
            return
        self.tank = tank
        self._fit_height()
        if tank is None or self._current >= len(tank.parts):
            self._current = -1
        self.setAccessibleDescription(tank.sentence if tank else "No readings yet.")
        if self._current >= 0:
            self._describe_part()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of the bar and the names under it."""
        return QSize(400, self.height_at(self.width()))

    def minimumSizeHint(self) -> QSize:
        """Return the smallest usable size."""
        return QSize(160, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap the names if the bar becomes too narrow for them."""
        super().resizeEvent(event)
        self._fit_height()

    def height_at(self, width: int) -> int:
        """Return the height of the bar and its names at a width, both in pixels."""
        layout = self._places_at(width)
        labels = layout.labels_height if layout else label_height(self.fontMetrics())
        return BAR_HEIGHT + 6 + labels

    def _fit_height(self) -> None:
        if self.minimumHeight() != self.sizeHint().height():
            self.setFixedHeight(self.sizeHint().height())

    @property
    def places(self) -> TankLayout | None:
        """The geometry of the parts; None without a tank with a size."""
        return self._places_at(self.width())

    def _places_at(self, width: int) -> TankLayout | None:
        if self.tank is None or self.tank.total_bytes <= 0:
            return None
        return TankLayout(self.tank, width, self.fontMetrics())

    # ── painting ─────────────────────────────────────────────────────────────────────────────

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the bar, its names, and the frame of the current part."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(0.5, 0.5, self.width() - 1, BAR_HEIGHT - 1)
        outline = QPainterPath()
        outline.addRoundedRect(whole, 6, 6)
        painter.setPen(QPen(QColor(self._theme.colour("border")), 1))
        painter.setBrush(QColor(self._theme.colour("field")))
        painter.drawPath(outline)
        layout = self.places
        if self.tank is None or layout is None:
            return
        painter.save()
        painter.setClipPath(outline)
        for part, stretch in zip(self.tank.parts, layout.stretches, strict=True):
            if stretch.width() > 0:
                self._paint_part(painter, part.key, stretch)
        painter.restore()
        self._paint_end(painter)
        if self.hasFocus():
            self._paint_focus(painter, whole, layout)
        for part, place in zip(self.tank.parts, layout.labels, strict=True):
            self._paint_label(painter, part, place)

    def _paint_focus(self, painter: QPainter, whole: QRectF, layout: TankLayout) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if 0 <= self._current < len(layout.stretches):
            painter.setPen(QPen(QColor(self._theme.colour("text")), 2))
            place = layout.stretches[self._current].adjusted(1, 1, -1, -1)
            painter.drawRoundedRect(place, 3, 3)
        else:
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 2))
            painter.drawRoundedRect(whole.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)

    def _paint_end(self, painter: QPainter) -> None:
        """Hatch the parts beyond the end of the card."""
        tank = self.tank
        if tank is None or tank.card_bytes is None:
            return
        x = round(self.width() * tank.card_bytes / tank.total_bytes)
        colour = QColor(self._theme.colour("failure"))
        beyond = QRectF(x, 1, self.width() - x - 1, BAR_HEIGHT - 2)
        wash = QColor(self._theme.colour("card"))
        wash.setAlpha(150)
        painter.fillRect(beyond, wash)
        painter.fillRect(beyond, QBrush(colour, Qt.BrushStyle.BDiagPattern))
        painter.setPen(QPen(colour, 3))
        painter.drawLine(QPointF(x, 0), QPointF(x, BAR_HEIGHT))

    def _paint_part(self, painter: QPainter, key: str, stretch: QRectF) -> None:
        role, pattern = _LOOKS[key]
        colour = QColor(self._theme.colour(role))
        if pattern == "empty":
            return
        if pattern == "solid":
            painter.fillRect(stretch, colour)
            return
        wash = QColor(colour)
        wash.setAlpha(36)
        painter.fillRect(stretch, wash)
        painter.fillRect(stretch, QBrush(colour, Qt.BrushStyle.BDiagPattern))
        painter.setPen(QPen(colour, 1, Qt.PenStyle.DashLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(stretch.adjusted(0.5, 0.5, -0.5, -0.5))

    def _paint_label(self, painter: QPainter, part: TankPart, place: QRectF) -> None:
        swatch = QRectF(place.x(), place.y() + 4, SWATCH, SWATCH)
        self._paint_part(painter, part.key, swatch)
        if _LOOKS[part.key][1] == "empty":
            painter.setPen(QPen(QColor(self._theme.colour("other")), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5))
        text = place.adjusted(SWATCH + 6, 0, 0, 0)
        line_height = place.height() / 2
        painter.setPen(QColor(self._theme.colour("muted")))
        painter.setFont(self.font())
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        name = self.fontMetrics().elidedText(
            part.label, Qt.TextElideMode.ElideRight, int(text.width()) + 1
        )
        painter.drawText(QRectF(text.x(), text.y(), text.width(), line_height), flags, name)
        painter.setPen(QColor(self._theme.colour("text")))
        font = self.font()
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        under = QRectF(text.x(), text.y() + line_height - 1, text.width() + 12, line_height)
        painter.drawText(under, flags, format_bytes(part.size_bytes))

    # ── mouse and keyboard ───────────────────────────────────────────────────────────────────

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move between parts with the arrow keys, Home and End."""
        count = len(self.tank.parts) if self.tank else 0
        steps = {
            Qt.Key.Key_Right: self._current + 1,
            Qt.Key.Key_Left: self._current - 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: count - 1,
        }
        target = steps.get(Qt.Key(event.key()))
        if target is None or not count:
            super().keyPressEvent(event)
            return
        self._walk_to(min(max(target, 0), count - 1))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Report the part under the mouse."""
        self._walk_to(self._part_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        """Report that no part is current."""
        super().leaveEvent(event)
        if not self.hasFocus():
            self._walk_to(-1)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Report that no part is current."""
        super().focusOutEvent(event)
        self._walk_to(-1)

    def event(self, event: QEvent) -> bool:
        """Show the part under the mouse as a tool tip as well."""
        if isinstance(event, QHelpEvent) and self.tank is not None:
            index = self._part_at(QPointF(event.pos()))
            words = self._words_of(self.tank.parts[index]) if index >= 0 else ""
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def _part_at(self, position: QPointF) -> int:
        layout = self.places
        return layout.part_at(position) if layout is not None else -1

    def _walk_to(self, index: int) -> None:
        if index == self._current:
            return
        self._current = index
        self._describe_part()
        self.update()

    def _describe_part(self) -> None:
        part = self.tank.parts[self._current] if self.tank and self._current >= 0 else None
        self.part_described.emit(self._words_of(part) if part else "")

    def _words_of(self, part: TankPart) -> str:
        assert self.tank is not None
        share = format_percent(self.tank.share(part))
        return f"{part.label}: {format_bytes(part.size_bytes)} ({share}), {part.explanation}."


class TankLayout:
    """The geometry of a tank's parts on a bar.

    Args:
        tank: the shown tank.
        width: of the bar, in pixels.
        metrics: of the font of the names.

    Attributes:
        stretches: the horizontal range of each part, from left to right.
        labels: the place of each part's name and size.
        lines: the number of lines of names.
    """

    def __init__(self, tank: Tank, width: int, metrics: QFontMetrics) -> None:
        self._tank, self._width = tank, width
        self._label_height = label_height(metrics)
        widths = [_label_width(part.label, part.size_bytes, metrics) for part in tank.parts]
        self.stretches = self._stretches()
        self.lines = 1
        self.labels = self._labels(widths)

    @property
    def labels_height(self) -> int:
        """The height of all lines of names, in pixels."""
        return self.lines * self._label_height

    def part_at(self, position: QPointF) -> int:
        """Return the part whose range or name is at this point; -1 for none."""
        for index, (stretch, label) in enumerate(zip(self.stretches, self.labels, strict=True)):
            if stretch.adjusted(-1, 0, 1, 0).contains(position) or label.contains(position):
                return index
        return -1

    def _stretches(self) -> list[QRectF]:
        parts = self._tank.parts
        shown = [part.size_bytes > 0 for part in parts]
        room = self._width - 2 - _BETWEEN * (sum(shown) - 1) - _LEAST_WIDTH * sum(shown)
        stretches, x = [], 1.0
        for part, is_shown in zip(parts, shown, strict=True):
            width = _LEAST_WIDTH + room * self._tank.share(part) if is_shown else 0.0
            stretches.append(QRectF(x, 1.0, width, BAR_HEIGHT - 2.0))
            x += width + (_BETWEEN if is_shown else 0.0)
        return stretches

    def _labels(self, widths: list[float]) -> list[QRectF]:
        """Return the place of each name, in rows from the left."""
        labels, line, x = [], 0, 0.0
        for width in widths:
            if x and x + width > self._width:
                line, x = line + 1, 0.0
            y = BAR_HEIGHT + 6.0 + line * self._label_height
            labels.append(QRectF(x, y, width, self._label_height - _LINE_GAP))
            x += width + _LABEL_GAP
        self.lines = line + 1
        return labels


def label_height(metrics: QFontMetrics) -> int:
    """Return the height of a name and the size under it, in pixels."""
    return 2 * (metrics.height() + _LINE_GAP) + _LINE_GAP


def _label_width(label: str, size_bytes: int, metrics: QFontMetrics) -> float:
    number = 1.1 * metrics.horizontalAdvance(format_bytes(size_bytes))  # allows for bold type
    return SWATCH + 8.0 + max(metrics.horizontalAdvance(label), number)
