"""The stage of a race: two pictures with their clocks, and the result above them.

The same painting fills a screen, makes the frames of an animation, and is the picture to share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QPainter, QPainterPath

from gpu_studio.ui.race.framed_picture import DIMMED, image_of, paint_framed
from gpu_studio.ui.theme import application_font

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QImage

    from gpu_studio.core.race.stage_view import StageSide, StageView

# Everything is measured in the stage's height, so it looks alike on every screen.
_MARGIN, _GAP = 0.028, 0.022
_HEAD, _SUB = 0.125, 0.034
_NAME, _SMALL, _FOOT = 0.034, 0.024, 0.024
_BAR = 0.022
_TRUST_SHARE = 0.38  # of the foot at most
_PACE_SHARE = 0.42  # of the line with the name
_LINE = 1.45  # of a font's size
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_SMALLEST_HEAD, _HEAD_STEP = 0.3, 0.05
_MOST_LINES = 4
_NORMAL, _STRONG = QFont.Weight.Normal, QFont.Weight.DemiBold


def paint_stage(
    painter: QPainter,
    place: QRectF,
    view: StageView,
    color: Callable[[str], QColor],
    to_come: Sequence[QImage | None] = (),
) -> None:
    """Paint a moment of a race.

    Args:
        painter: paints on a ground that is filled already.
        place: all of the ground.
        view: the moment.
        color: returns the color of a role.
        to_come: what each side without a picture will draw, dimmed.
    """
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    _Stage(painter, place, view, color, to_come).paint()


def headline_share(wide: float, room: float) -> float:
    """Return the share of the largest type in which a headline fits.

    It changes in steps: another digit must not change the size of the words.

    Args:
        wide: the width in the largest type.
        room: the width that there is.
    """
    if wide <= room:
        return 1.0
    return max(math.floor(room / wide * 0.98 / _HEAD_STEP) * _HEAD_STEP, _SMALLEST_HEAD)


class _Stage:
    def __init__(
        self,
        painter: QPainter,
        place: QRectF,
        view: StageView,
        color: Callable[[str], QColor],
        to_come: Sequence[QImage | None],
    ) -> None:
        self._painter, self._view, self._color = painter, view, color
        self._to_come = to_come or (None,) * len(view.sides)
        # A screen that is high for its width has room above and below.
        self._unit = min(place.height(), place.width() * 9 / 16)
        margin = _MARGIN * self._unit
        self._inner = place.adjusted(margin, margin, -margin, -margin)
        # Side by side, two pictures would be a stamp each on a screen that stands upright.
        self._is_upright = place.height() > place.width()

    def paint(self) -> None:
        """Paint the head, the lanes and the foot."""
        top, bottom = self._head(), self._foot()
        gap = _GAP * self._unit
        stage = QRectF(self._inner)
        stage.setTop(top + gap)
        stage.setBottom(bottom - gap)
        length = stage.height() if self._is_upright else stage.width()
        step = (length + gap) / max(len(self._view.sides), 1)
        for number, (side, to_come) in enumerate(zip(self._view.sides, self._to_come, strict=True)):
            lane = QRectF(stage)
            if self._is_upright:
                lane.setTop(stage.top() + number * step)
                lane.setHeight(step - gap)
            else:
                lane.setLeft(stage.left() + number * step)
                lane.setWidth(step - gap)
            below = self._picture(lane, side, to_come)
            self._figures(below, side)

    def _head(self) -> float:
        """Paint the headline and the words below it; return where they end."""
        view, inner = self._view, self._inner
        wide = self._metrics(_HEAD, QFont.Weight.Bold).horizontalAdvance(view.headline)
        size = headline_share(wide, inner.width()) * _HEAD
        head = QRectF(inner.left(), inner.top(), inner.width(), _HEAD * _LINE * self._unit)
        center = Qt.AlignmentFlag.AlignCenter
        self._text(head, view.headline, size, "text", center, QFont.Weight.Bold)
        metrics = self._metrics(_SUB)
        room = QRectF(0, 0, inner.width(), _MOST_LINES * metrics.lineSpacing())
        taken = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, view.detail)
        lines = max(math.ceil(taken.height() / metrics.lineSpacing() - 0.1), 1)
        sub = QRectF(inner.left(), head.bottom(), inner.width(), lines * _SUB * _LINE * self._unit)
        self._painter.setFont(self._font(_SUB))
        self._painter.setPen(self._color("muted"))
        self._painter.drawText(sub, center | Qt.TextFlag.TextWordWrap, view.detail)
        return sub.bottom()

    def _foot(self) -> float:
        """Paint what was raced, and how certain it is; return where that begins."""
        view, foot = self._view, QRectF(self._inner)
        foot.setTop(foot.bottom() - _FOOT * _LINE * self._unit)
        metrics = self._metrics(_FOOT)
        taken = min(metrics.horizontalAdvance(view.trust) + 1, _TRUST_SHARE * foot.width())
        trust = foot.adjusted(foot.width() - taken, 0, 0, 0)
        self._text(trust, view.trust, _FOOT, "good" if view.is_good else "amber", _RIGHT)
        left = foot.adjusted(0, 0, -taken - metrics.averageCharWidth(), 0)
        self._text(left, view.foot, _FOOT, "muted", _LEFT)
        return foot.top()

    def _picture(self, lane: QRectF, side: StageSide, to_come: QImage | None) -> QRectF:
        """Paint a side's picture; return the place below it."""
        unit = self._unit
        below = (_NAME * _LINE + _BAR * 1.6 + 2 * _SMALL * _LINE) * unit
        frame = lane.adjusted(0, 0, 0, -below)
        free = frame.height()
        # The shape of the built-in pictures, or a higher one where there is room.
        frame.setHeight(min(free, frame.width() * 9 / 16))
        frame.translate(0, (free - frame.height()) / 2)
        image = image_of(side.picture)
        paint_framed(
            self._painter, frame, image or to_come, ground=self._color("track"),
            radius=0.012 * unit, opacity=DIMMED if image is None else 1.0,
            detail=None if image is None else self._view.lens,
        )  # fmt: skip
        return QRectF(lane.left(), frame.bottom() + 0.4 * _SMALL * unit, lane.width(), below)

    def _figures(self, place: QRectF, side: StageSide) -> None:
        """Paint a side's name and pace, its way to the finish line, and its clock and steps."""
        unit = self._unit
        line = QRectF(place)
        line.setHeight(_NAME * _LINE * unit)
        swatch = QRectF(line.left(), 0, 0.5 * line.height(), 0.5 * line.height())
        swatch.moveTop(line.center().y() - swatch.height() / 2)
        self._bar(swatch, side.role, 0.2 * swatch.height())
        words = line.adjusted(0.8 * line.height(), 0, 0, 0)
        pace_room = _PACE_SHARE * words.width()
        name = words.adjusted(0, 0, -pace_room, 0)
        self._text(name, side.name, _NAME, "text", _LEFT, _STRONG)
        self._text(words, side.pace, _NAME, "text", _RIGHT, _STRONG, pace_room)
        track = QRectF(line.left(), line.bottom() + 0.1 * _BAR * unit, line.width(), _BAR * unit)
        self._bar(track, "track", track.height() / 4)
        if side.share > 0:
            done = QRectF(track)
            done.setWidth(max(track.width() * min(side.share, 1.0), track.height() / 2))
            self._bar(done, side.role, track.height() / 4)
        facts = QRectF(track.left(), track.bottom(), track.width(), _SMALL * _LINE * unit)
        done_words = f"✓ {side.steps}" if side.is_reached else side.steps
        left = " · ".join(filter(None, (side.clock, done_words)))
        self._text(facts, left, _SMALL, "good" if side.is_reached else "muted", _LEFT)
        taken = self._metrics(_SMALL).horizontalAdvance(f"{left}  ")
        self._text(facts, side.achieved, _SMALL, "muted", _RIGHT, room=facts.width() - taken)

    def _bar(self, place: QRectF, role: str, radius: float) -> None:
        outline = QPainterPath()
        outline.addRoundedRect(place, radius, radius)
        self._painter.fillPath(outline, self._color(role))

    def _text(
        self,
        place: QRectF,
        text: str,
        size: float,
        role: str,
        alignment: Qt.AlignmentFlag,
        weight: QFont.Weight = _NORMAL,
        room: float | None = None,
    ) -> None:
        self._painter.setFont(self._font(size, weight))
        self._painter.setPen(self._color(role))
        shown = self._metrics(size, weight).elidedText(
            text, Qt.TextElideMode.ElideRight, room or place.width()
        )
        self._painter.drawText(place, alignment, shown)

    def _metrics(self, size: float, weight: QFont.Weight = _NORMAL) -> QFontMetricsF:
        return QFontMetricsF(self._font(size, weight))

    def _font(self, size: float, weight: QFont.Weight = _NORMAL) -> QFont:
        font = application_font(QGuiApplication.font())
        font.setPixelSize(max(round(size * self._unit), 1))
        font.setWeight(weight)
        return font
