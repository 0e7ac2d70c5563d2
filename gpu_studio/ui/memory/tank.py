"""The tank: one custom-painted bar whose parts add up to the device's memory.

Color, hatching, the sizes in the bar and the names under it tell the parts apart. A tool tip shows
a part's share and meaning, the accessible description those of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetrics,
    QHelpEvent,
    QPainter,
    QPainterPath,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from gpu_studio.core.units import format_bytes, format_percent
from gpu_studio.ui.page import Box, Own
from gpu_studio.ui.page_parts import Words
from gpu_studio.ui.plots.plot_curve import ink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gpu_studio.core.memory.tank import FitVerdict, Tank, TankPart
    from gpu_studio.ui.page import Part
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
    "copies": ("gpu0", "hatched"),
    "moments": ("gpu1", "solid"),
    "step": ("gpu1", "hatched"),
    "cache": ("gpu0", "solid"),
    "activations": ("allocated", "hatched"),
    "free": ("other", "empty"),
    "spilled": ("failure", "hatched"),
}

_LINES, _SMALL_LINES = 2.1, 1.5  # of text, in the bar's height
SWATCH = 10
_BETWEEN = 2.0
_LEAST_WIDTH = 3.0  # keeps a part of a few MiB visible and clickable
_LABEL_GAP = 18.0
_LINE_GAP, _ABOVE_NAMES = 4, 6
_INSIDE = 6.0  # pixels around a size in the bar
_WIDEST_SIZE = "888 MiB"


class TankBar(QWidget):
    """The bar with the sizes of its parts, and their names under it.

    Args:
        theme: gives the colors.
        name: its object name.
        is_small: a lower bar that has the names inside, as far as there is room.
        reserves: names that may come: they have their lines from the beginning.

    Attributes:
        tank: the shown tank.
    """

    def __init__(
        self,
        theme: Theme,
        *,
        name: str,
        is_small: bool = False,
        reserves: Sequence[str] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme, self._is_small, self._reserves = theme, is_small, reserves
        self.tank: Tank | None = None
        self.setAccessibleName("Memory use")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_tank(self, tank: Tank | None) -> None:
        """Show another tank."""
        if tank == self.tank:
            return
        self.tank = tank
        self._fit_height()
        parts = [_words_of(tank, part) for part in tank.parts] if tank else []
        self.setAccessibleDescription("\n".join(parts) or "No readings yet.")
        self.update()

    @property
    def bar_height(self) -> int:
        """The height of the bar alone, in pixels."""
        return round((_SMALL_LINES if self._is_small else _LINES) * self.fontMetrics().height())

    def sizeHint(self) -> QSize:
        """Return the size of the bar and the names under it."""
        if self._is_small:
            return QSize(400, self.bar_height)
        layout, metrics = self.places, self.fontMetrics()
        widths = [_name_width(label, _WIDEST_SIZE, metrics) for label in self._reserves]
        lines = max(layout.lines if layout is not None else 1, _lines_of(widths, self.width()))
        return QSize(400, self.bar_height + _ABOVE_NAMES + lines * label_height(metrics))

    def minimumSizeHint(self) -> QSize:
        """Return the smallest usable size."""
        return QSize(160, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap the names if the bar becomes too narrow for them."""
        super().resizeEvent(event)
        self._fit_height()

    def _fit_height(self) -> None:
        self.setFixedHeight(self.sizeHint().height())

    @property
    def places(self) -> TankLayout | None:
        """The geometry of the parts; None without a tank with a size."""
        if self.tank is None or self.tank.total_bytes <= 0:
            return None
        return TankLayout(self.tank, self.width(), self.bar_height, self.fontMetrics())

    # ── painting ─────────────────────────────────────────────────────────────────────────────

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the bar and its names."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(0.5, 0.5, self.width() - 1, self.bar_height - 1)
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
                if stretch.right() <= self._end_x:  # the hatch would lie over it
                    self._paint_size(painter, part, stretch)
        painter.restore()
        self._paint_end(painter)
        if not self._is_small:
            for part, place in zip(self.tank.parts, layout.labels, strict=True):
                self._paint_label(painter, part, place)

    @property
    def _end_x(self) -> int:
        """Where the card ends on the bar."""
        tank = self.tank
        if tank is None or tank.card_bytes is None:
            return self.width()
        return round(self.width() * tank.card_bytes / tank.total_bytes)

    def _paint_end(self, painter: QPainter) -> None:
        """Hatch the parts beyond the end of the card."""
        tank = self.tank
        if tank is None or tank.card_bytes is None:
            return
        x = self._end_x
        colour = QColor(self._theme.colour("failure"))
        beyond = QRectF(x, 1, self.width() - x - 1, self.bar_height - 2)
        wash = QColor(self._theme.colour("card"))
        wash.setAlpha(150)
        painter.fillRect(beyond, wash)
        painter.fillRect(beyond, QBrush(colour, Qt.BrushStyle.BDiagPattern))
        painter.setPen(QPen(colour, 3))
        painter.drawLine(QPointF(x, 0), QPointF(x, self.bar_height))

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

    def _paint_size(self, painter: QPainter, part: TankPart, stretch: QRectF) -> None:
        """Write the size into the part, with its name in a small bar, if there is room."""
        size = format_bytes(part.size_bytes)
        offered = (f"{part.label} {size}", size) if self._is_small else (size,)
        metrics = QFontMetrics(_bold(self.font()))
        room = stretch.width() - 2 * _INSIDE
        text = next((one for one in offered if metrics.horizontalAdvance(one) <= room), "")
        if not text:
            return
        role, pattern = _LOOKS[part.key]
        painter.setFont(_bold(self.font()))
        painter.setPen(QColor(self._theme.colour("on_device" if pattern == "solid" else "text")))
        if pattern == "hatched":
            width = metrics.horizontalAdvance(text) + 2 * _INSIDE
            ground = QRectF(0, 0, width, metrics.height() + 2)
            ground.moveCenter(stretch.center())
            painter.fillRect(ground, QColor(self._theme.colour("card")))
            painter.setPen(QColor(self._theme.colour(ink(role))))
        painter.drawText(stretch, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_label(self, painter: QPainter, part: TankPart, place: QRectF) -> None:
        swatch = QRectF(place.x(), place.center().y() - SWATCH / 2, SWATCH, SWATCH)
        self._paint_part(painter, part.key, swatch)
        if _LOOKS[part.key][1] == "empty":
            painter.setPen(QPen(QColor(self._theme.colour("other")), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(swatch.adjusted(0.5, 0.5, -0.5, -0.5))
        text = place.adjusted(SWATCH + 6, 0, _LABEL_GAP, 0)
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(self._theme.colour("muted")))
        painter.setFont(self.font())
        painter.drawText(text, flags, part.label)
        text.setLeft(text.left() + self.fontMetrics().horizontalAdvance(f"{part.label} "))
        painter.setPen(QColor(self._theme.colour("text")))
        painter.setFont(_bold(self.font()))
        painter.drawText(text, flags, format_bytes(part.size_bytes))

    def event(self, event: QEvent) -> bool:
        """Show the part under the mouse as a tool tip."""
        layout = self.places
        if isinstance(event, QHelpEvent) and self.tank is not None and layout is not None:
            index = layout.part_at(QPointF(event.pos()))
            words = _words_of(self.tank, self.tank.parts[index]) if index >= 0 else ""
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)


class TankLayout:
    """The geometry of a tank's parts on a bar.

    Args:
        tank: the shown tank.
        width: of the bar, in pixels.
        bar_height: of the bar, in pixels.
        metrics: of the font of the names.

    Attributes:
        stretches: the horizontal range of each part, from left to right.
        labels: the place of each part's name and size.
        lines: the number of lines of names.
    """

    def __init__(self, tank: Tank, width: int, bar_height: int, metrics: QFontMetrics) -> None:
        self._tank, self._width, self._bar_height = tank, width, bar_height
        self._label_height = label_height(metrics)
        self.stretches = self._stretches()
        widths = [
            _name_width(part.label, format_bytes(part.size_bytes), metrics) for part in tank.parts
        ]
        self.labels = self._labels(widths)
        self.lines = _lines_of(widths, width)

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
            stretches.append(QRectF(x, 1.0, width, self._bar_height - 2.0))
            x += width + (_BETWEEN if is_shown else 0.0)
        return stretches

    def _labels(self, widths: list[float]) -> list[QRectF]:
        """Return the place of each name, in rows from the left."""
        return [
            QRectF(
                x, self._bar_height + _ABOVE_NAMES + line * self._label_height,
                width, self._label_height - _LINE_GAP,
            )
            for (line, x), width in zip(_in_lines(widths, self._width), widths, strict=True)
        ]  # fmt: skip


def label_height(metrics: QFontMetrics) -> int:
    """Return the height of a name with its size, in pixels."""
    return metrics.height() + _LINE_GAP


def _name_width(label: str, size: str, metrics: QFontMetrics) -> float:
    number = 1.15 * metrics.horizontalAdvance(size)  # it is bold
    return SWATCH + 8.0 + metrics.horizontalAdvance(f"{label} ") + number


def _in_lines(widths: Sequence[float], room: int) -> Iterator[tuple[int, float]]:
    """Yield the line and the left end of each name, in lines from the left."""
    line, x = 0, 0.0
    for width in widths:
        if x and x + width > room:
            line, x = line + 1, 0.0
        yield line, x
        x += width + _LABEL_GAP


def _lines_of(widths: Sequence[float], room: int) -> int:
    return max((line + 1 for line, _ in _in_lines(widths, room)), default=0)


def _words_of(tank: Tank, part: TankPart) -> str:
    share = format_percent(tank.share(part))
    return f"{part.label}: {format_bytes(part.size_bytes)} ({share}), {part.explanation}."


def _bold(font: QFont) -> QFont:
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    return bold


def verdict_part(theme: Theme, verdict: Callable[[], FitVerdict], name: str) -> Part:
    """Return the box of a verdict; its parts are called ``name.verdict``, ``.tank``, ``.told``."""
    return Box(
        Words(lambda: verdict().notice, "title", name=f"{name}.verdict"),
        Own(
            lambda: TankBar(theme, name=f"memory.{name}.tank"),
            lambda bar: bar.show_tank(verdict().tank),
            name=f"{name}.tank",
            shown=lambda: verdict().tank is not None,
        ),
        Words(lambda: verdict().told, "muted", name=f"{name}.told"),
        tone=lambda: verdict().notice.tone,
        shown=lambda: bool(verdict().notice.sentence),
        name=f"{name}.answer",
    )
