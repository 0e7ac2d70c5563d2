"""Where the parts of the tank and their names are painted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF

from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from PySide6.QtGui import QFontMetrics

    from gpu_studio.core.memory.tank import Tank

BAR_HEIGHT = 34
LABEL_HEIGHT = 42
SWATCH = 10
_BETWEEN = 2.0
_LEAST_WIDTH = 3.0  # so that a part of a few MiB can still be seen and pointed at
_LABEL_GAP = 18.0


class TankLayout:
    """The places of one tank's parts on a bar of a width.

    Args:
        tank: what is shown.
        width: of the bar, in pixels.
        metrics: of the font of the names.

    Attributes:
        stretches: where each part is painted, from left to right.
        labels: where each part's name and number are.
        lines: how many lines of names there are.
    """

    def __init__(self, tank: Tank, width: int, metrics: QFontMetrics) -> None:
        self._tank, self._width = tank, width
        widths = [_label_width(part.label, part.size_bytes, metrics) for part in tank.parts]
        flow = self._flow(widths)
        self.stretches = self._stretches()
        self.lines = max((line for line, _ in flow), default=0) + 1
        self.labels = self._labels(widths, flow)

    def part_at(self, position: QPointF) -> int:
        """Return the part whose stretch or name is there; -1 for none."""
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

    def _flow(self, widths: list[float]) -> list[tuple[int, float]]:
        """Return each name's line and x, side by side from the left."""
        flow: list[tuple[int, float]] = []
        line, x = 0, 0.0
        for width in widths:
            if x and x + width > self._width:
                line, x = line + 1, 0.0
            flow.append((line, x))
            x += width + _LABEL_GAP
        return flow

    def _labels(self, widths: list[float], flow: list[tuple[int, float]]) -> list[QRectF]:
        """Return a place for each name.

        Under its part, moved aside where two would meet; where they need more than one line, side
        by side.
        """
        xs = [x for _, x in flow] if self.lines > 1 else self._under(widths)
        y = BAR_HEIGHT + 6.0
        return [
            QRectF(x, y + line * LABEL_HEIGHT, width, LABEL_HEIGHT - 4.0)
            for x, width, (line, _) in zip(xs, widths, flow, strict=True)
        ]

    def _under(self, widths: list[float]) -> list[float]:
        xs: list[float] = []
        for stretch, width in zip(self.stretches, widths, strict=True):
            least = xs[-1] + widths[len(xs) - 1] + _LABEL_GAP if xs else 0.0
            xs.append(max(stretch.x() if width else least, least))
        limit = float(self._width)
        for index in reversed(range(len(xs))):
            xs[index] = min(xs[index], limit - widths[index])
            limit = xs[index] - _LABEL_GAP
        return xs


def _label_width(label: str, size_bytes: int, metrics: QFontMetrics) -> float:
    number = 1.1 * metrics.horizontalAdvance(format_bytes(size_bytes))  # it is written bold
    return SWATCH + 8.0 + max(metrics.horizontalAdvance(label), number)
