"""The stage of a race: two pictures with their clocks, and the result above them.

The same painting fills a screen and makes the frames of an animation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QPainter, QPainterPath

from gpu_studio.ui.race.framed_picture import DIMMED, paint_framed
from gpu_studio.ui.theme import application_font

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QImage

    from gpu_studio.core.race.animation_order import AnimatedSide
    from gpu_studio.core.race.photo import Detail

# Everything is measured in the stage's height, so it looks alike on every screen.
_MARGIN, _GAP = 0.028, 0.022
_HEAD, _SUB = 0.125, 0.034
_NAME, _SMALL, _FOOT = 0.034, 0.024, 0.024
_BAR = 0.022
_TRUST_SHARE = 0.38  # of the foot at most
_LINE = 1.45  # of a font's size
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_SMALLEST_HEAD, _HEAD_STEP = 0.3, 0.05
_MOST_LINES = 4


class StageSide(NamedTuple):
    """A contestant on the stage: its words, and its picture; a dimmed one is only to come."""

    words: AnimatedSide
    image: QImage | None = None
    is_dimmed: bool = False


class StageView(NamedTuple):
    """What is on the stage at a moment.

    Attributes:
        headline: who leads, or the result.
        detail: the words below it.
        sides: the contestants.
        foot: the picture, its size and the dtype.
        trust: whether the result can be trusted, in a few words.
        is_good: whether it can.
        lens: what a lens shows of each picture; None without one.
    """

    headline: str
    sides: tuple[StageSide, ...]
    detail: str = ""
    foot: str = ""
    trust: str = ""
    is_good: bool = True
    lens: Detail | None = None


def paint_stage(
    painter: QPainter, place: QRectF, view: StageView, color: Callable[[str], QColor]
) -> None:
    """Paint a moment of a race.

    Args:
        painter: paints on a ground that is filled already.
        place: all of the ground.
        view: the moment.
        color: returns the color of a role.
    """
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    _Stage(painter, place, view, color).paint()


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
        self, painter: QPainter, place: QRectF, view: StageView, color: Callable[[str], QColor]
    ) -> None:
        self._painter, self._view, self._color = painter, view, color
        # A screen that is high for its width has room above and below.
        high = min(place.height(), place.width() * 9 / 16)
        self._unit = high
        self._place = QRectF(place)
        self._margin = _MARGIN * high

    def paint(self) -> None:
        """Paint the head, the lanes and the foot."""
        unit, inner = (
            self._unit,
            self._place.adjusted(self._margin, self._margin, -self._margin, -self._margin),
        )
        head = QRectF(inner.left(), inner.top(), inner.width(), _HEAD * _LINE * unit)
        self._headline(head)
        sub = QRectF(inner.left(), head.bottom(), inner.width(), 0)
        sub.setHeight(self._detail_lines(sub.width()) * _SUB * _LINE * unit)
        self._painter.setFont(self._font(_SUB, QFont.Weight.Normal))
        self._painter.setPen(self._color("muted"))
        centered = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        self._painter.drawText(sub, centered, self._view.detail)
        foot = QRectF(inner)
        foot.setTop(inner.bottom() - _FOOT * _LINE * unit)
        words = QFontMetricsF(self._font(_FOOT, QFont.Weight.Normal))
        taken = min(words.horizontalAdvance(self._view.trust) + 1, _TRUST_SHARE * foot.width())
        trust = foot.adjusted(foot.width() - taken, 0, 0, 0)
        self._text(
            trust, self._view.trust, _FOOT, "good" if self._view.is_good else "amber", _RIGHT
        )
        left = foot.adjusted(0, 0, -taken - words.averageCharWidth(), 0)
        self._text(left, self._view.foot, _FOOT, "muted", _LEFT)
        gap = _GAP * unit
        stage = QRectF(inner.left(), sub.bottom() + gap, inner.width(), 0)
        stage.setBottom(foot.top() - gap)
        count = max(len(self._view.sides), 1)
        # Side by side, two pictures would be a stamp each on a screen that stands upright.
        is_upright = self._place.height() > self._place.width()
        length = stage.height() if is_upright else stage.width()
        step = (length + gap) / count
        for number, side in enumerate(self._view.sides):
            lane = QRectF(stage)
            if is_upright:
                lane.setTop(stage.top() + number * step)
                lane.setHeight(step - gap)
            else:
                lane.setLeft(stage.left() + number * step)
                lane.setWidth(step - gap)
            self._lane(lane, side)

    def _detail_lines(self, width: float) -> int:
        """Return how many lines the words below the headline take; at least one."""
        metrics = QFontMetricsF(self._font(_SUB, QFont.Weight.Normal))
        room = QRectF(0, 0, width, _MOST_LINES * metrics.lineSpacing())
        taken = metrics.boundingRect(room, Qt.TextFlag.TextWordWrap, self._view.detail)
        return max(math.ceil(taken.height() / metrics.lineSpacing() - 0.1), 1)

    def _headline(self, place: QRectF) -> None:
        font = self._font(_HEAD, QFont.Weight.Bold)
        wide = QFontMetricsF(font).horizontalAdvance(self._view.headline)
        size = headline_share(wide, place.width()) * _HEAD
        self._text(
            place, self._view.headline, size, "text", Qt.AlignmentFlag.AlignCenter,
            QFont.Weight.Bold,
        )  # fmt: skip

    def _lane(self, place: QRectF, side: StageSide) -> None:
        unit = self._unit
        below = (_NAME * _LINE + _BAR * 1.6 + 2 * _SMALL * _LINE) * unit
        room = QRectF(place)
        room.setHeight(place.height() - below)
        # The shape of the built-in pictures, or a higher one where there is room.
        frame = QRectF(room)
        frame.setHeight(min(room.height(), room.width() * 9 / 16))
        frame.moveTop(room.top() + (room.height() - frame.height()) / 2)
        paint_framed(
            self._painter, frame, side.image, ground=self._color("track"), radius=0.012 * unit,
            opacity=DIMMED if side.is_dimmed else 1.0,
            detail=None if side.is_dimmed else self._view.lens,
        )  # fmt: skip
        line = QRectF(place.left(), frame.bottom() + 0.4 * _SMALL * unit, place.width(), 0)
        line.setHeight(_NAME * _LINE * unit)
        swatch = QRectF(line.left(), 0, 0.5 * line.height(), 0.5 * line.height())
        swatch.moveTop(line.center().y() - swatch.height() / 2)
        self._bar(swatch, self._color(side.words.role), 0.2 * swatch.height())
        words = line.adjusted(0.8 * line.height(), 0, 0, 0)
        pace_room = 0.42 * words.width()
        name = words.adjusted(0, 0, -pace_room, 0)
        self._text(name, side.words.name, _NAME, "text", _LEFT, QFont.Weight.DemiBold)
        self._text(words, side.words.pace, _NAME, "text", _RIGHT, QFont.Weight.DemiBold, pace_room)
        track = QRectF(line.left(), line.bottom() + 0.1 * _BAR * unit, line.width(), _BAR * unit)
        self._bar(track, self._color("track"), track.height() / 4)
        if side.words.share > 0:
            done = QRectF(track)
            done.setWidth(max(track.width() * min(side.words.share, 1.0), track.height() / 2))
            self._bar(done, self._color(side.words.role), track.height() / 4)
        facts = QRectF(track.left(), track.bottom(), track.width(), _SMALL * _LINE * unit)
        done_words = f"✓ {side.words.steps}" if side.words.is_reached else side.words.steps
        words_role = "good" if side.words.is_reached else "muted"
        texts = (
            f"{side.words.clock} · {done_words}" if side.words.clock else done_words,
            side.words.achieved,
        )
        self._text(facts, texts[0], _SMALL, words_role, _LEFT)
        metrics = QFontMetricsF(self._font(_SMALL, QFont.Weight.Normal))
        taken = metrics.horizontalAdvance(f"{texts[0]}  ")
        self._text(facts, texts[1], _SMALL, "muted", _RIGHT, room=facts.width() - taken)

    def _bar(self, place: QRectF, color: QColor, radius: float) -> None:
        outline = QPainterPath()
        outline.addRoundedRect(place, radius, radius)
        self._painter.fillPath(outline, color)

    def _text(
        self,
        place: QRectF,
        text: str,
        size: float,
        role: str,
        alignment: Qt.AlignmentFlag,
        weight: QFont.Weight = QFont.Weight.Normal,
        room: float | None = None,
    ) -> None:
        font = self._font(size, weight)
        self._painter.setFont(font)
        self._painter.setPen(self._color(role))
        shown = QFontMetricsF(font).elidedText(
            text, Qt.TextElideMode.ElideRight, room or place.width()
        )
        self._painter.drawText(place, alignment, shown)

    def _font(self, size: float, weight: QFont.Weight) -> QFont:
        font = application_font(QGuiApplication.font())
        font.setPixelSize(max(round(size * self._unit), 1))
        font.setWeight(weight)
        return font
