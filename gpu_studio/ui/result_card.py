"""Paints a result to share: what `core.shared_card` says, as a picture with its text chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QPainter, QPainterPath, QPen

from gpu_studio.core.resources import MissingResourceError, resource_path
from gpu_studio.core.shared_card import decode_card
from gpu_studio.ui.card_sheet import (
    LEFT,
    RIGHT,
    SIZE,
    fitting_font,
    new_sheet,
    paint_bar,
    painting_application,
    sheet_color,
    sheet_font,
    with_text,
)
from gpu_studio.ui.png import png_bytes

if TYPE_CHECKING:
    from PySide6.QtGui import QColor

    from gpu_studio.core.shared_card import CardRow, SharedCard

_MARGIN, _GAP = 64.0, 20.0
_WIDTH = SIZE[0] - 2 * _MARGIN
_ICON = 42.0
_HEAD_TOP, _NAME_TOP, _HEADLINE_TOP, _LINE_TOP = 38.0, 96.0, 136.0, 226.0
_HEADLINE_HEIGHT, _LINE_HEIGHT = 88.0, 34.0
_ROWS_TOP, _ROWS_BOTTOM = 284.0, 524.0
_ROW_HEIGHT = 56.0
_NOTE_TOP, _FOOT_TOP = 532.0, 572.0
_INKS = {"good": "good", "amber": "amber", "failure": "failure_ink"}
_SINGLE = int(LEFT)
_MOST_TITLE = 0.3  # of the width
_NARROW_ROW = 44.0  # two lines of the usual type do not fit into it
_BAR_HEIGHTS = (24.0, 14.0)  # the device's own, then what it is compared with


def paint_result(card: SharedCard) -> QImage:
    """Return the picture of a result, with its text chunk."""
    image, painter = new_sheet(is_dark=card.is_dark)
    _CardPainter(painter, card).paint()
    painter.end()
    return with_text(image, card.keyword, card.content)


def png_of_result(card: SharedCard) -> bytes:
    """Return the PNG file of a result."""
    return png_bytes(paint_result(card))


def answer(content: bytes) -> bytes:
    """Return the PNG file of a `SharedCard` in JSON; the whole work of a child process."""
    card = decode_card(content)
    with painting_application():
        return png_of_result(card)


class _CardPainter:
    def __init__(self, painter: QPainter, card: SharedCard) -> None:
        self._painter, self._card = painter, card

    def paint(self) -> None:
        card = self._card
        self._paint_head()
        self._text(card.name, QRectF(_MARGIN, _NAME_TOP, _WIDTH, 40), 30, "muted")
        self._paint_headline()
        self._paint_line()
        self._paint_rows()
        self._text(card.note, QRectF(_MARGIN, _NOTE_TOP, _WIDTH, 32), 20, "text")
        foot = QRectF(_MARGIN, _FOOT_TOP, _WIDTH, 32)
        day = self._width(card.day, 19) + _GAP if card.day else 0.0
        self._text(card.facts, foot.adjusted(0, 0, -day, 0), 19, "muted")
        self._text(card.day, foot, 19, "muted", flags=RIGHT)

    def _paint_head(self) -> None:
        head = QRectF(_MARGIN, _HEAD_TOP, _WIDTH, 46)
        icon = _icon()
        if not icon.isNull():
            place = QRectF(head.left(), head.center().y() - _ICON / 2, _ICON, _ICON)
            self._painter.drawImage(place, icon)
        room = QRectF(head)
        room.setRight(self._paint_stamp(head) - _GAP)
        room.setLeft(head.left() + _ICON + 16)
        left = self._text("GPU Studio", room, 24, "text", QFont.Weight.DemiBold)
        room.setLeft(room.left() + left + 14)
        self._text(f"·  {self._card.title}", room, 24, "muted")

    def _paint_stamp(self, head: QRectF) -> float:
        """Paint the stamp at the right end and return its left end."""
        font = sheet_font(20, QFont.Weight.DemiBold)
        metrics = QFontMetricsF(font)
        text = metrics.elidedText(self._card.stamp, Qt.TextElideMode.ElideRight, _WIDTH / 2)
        chip = QRectF(head)
        chip.setLeft(head.right() - metrics.horizontalAdvance(text) - 44)
        outline = QPainterPath()
        outline.addRoundedRect(chip, chip.height() / 2, chip.height() / 2)
        self._painter.fillPath(outline, self._color(f"{self._card.tone}_soft"))
        self._painter.setFont(font)
        self._painter.setPen(self._color(_INKS[self._card.tone]))
        self._painter.drawText(chip, int(Qt.AlignmentFlag.AlignCenter), text)
        return chip.left()

    def _paint_headline(self) -> None:
        place = QRectF(_MARGIN, _HEADLINE_TOP, _WIDTH, _HEADLINE_HEIGHT)
        self._painter.setFont(fitting_font(self._card.headline, place, (30, 76), _SINGLE))
        self._painter.setPen(self._color("text"))
        self._painter.drawText(place, _SINGLE, self._card.headline)

    def _paint_line(self) -> None:
        """Paint the line below the headline, with the key of the colors at its right end."""
        place = QRectF(_MARGIN, _LINE_TOP, _WIDTH, _LINE_HEIGHT)
        right = place.right()
        for key in reversed(self._card.keys):
            font = sheet_font(20)
            most = _WIDTH * _MOST_TITLE
            text = QFontMetricsF(font).elidedText(key.name, Qt.TextElideMode.ElideRight, most)
            width = QFontMetricsF(font).horizontalAdvance(text) + 1
            self._text(text, QRectF(right - width, place.top(), width, place.height()), 20, "text")
            swatch = QPainterPath()
            swatch.addRoundedRect(QRectF(right - width - 26, place.center().y() - 8, 16, 16), 4, 4)
            self._painter.fillPath(swatch, self._color(key.role))
            right -= width + 26 + _GAP
        self._text(self._card.line, QRectF(place.left(), place.top(), right - place.left(),
                                           place.height()), 22, "muted")  # fmt: skip

    def _paint_rows(self) -> None:
        rows = self._card.rows
        if not rows:
            return
        height = min((_ROWS_BOTTOM - _ROWS_TOP) / len(rows), _ROW_HEIGHT)
        titles = min(max(self._width(row.title, 20) for row in rows), _WIDTH * _MOST_TITLE)
        bold = QFont.Weight.DemiBold
        large, small = (18, 13) if height < _NARROW_ROW else (21, 16)
        values = max(
            max(self._width(row.value, large, bold), self._width(row.note, small)) for row in rows
        )
        left = _MARGIN + titles + _GAP
        right = SIZE[0] - _MARGIN - min(values, _WIDTH * _MOST_TITLE) - _GAP
        for number, row in enumerate(rows):
            place = QRectF(left, _ROWS_TOP + number * height, right - left, height)
            self._text(row.title, QRectF(_MARGIN, place.top(), titles + 1, height), 20, "text")
            self._paint_bars(row, place)
            words = QRectF(right + _GAP, place.top(), SIZE[0] - _MARGIN - right - _GAP, height)
            if not row.note:
                self._text(row.value, words, large, "text", bold, RIGHT)
                continue
            half = height / 2
            upper = QRectF(words.left(), words.top() + 2, words.width(), half)
            lower = QRectF(words.left(), words.top() + half - 1, words.width(), half - 4)
            self._text(row.value, upper, large, "text", bold, RIGHT)
            self._text(row.note, lower, small, "muted", flags=RIGHT)

    def _paint_bars(self, row: CardRow, place: QRectF) -> None:
        heights = _BAR_HEIGHTS[: len(row.bars)]
        top = place.center().y() - (sum(heights) + 3 * (len(heights) - 1)) / 2
        for index, (bar, tall) in enumerate(zip(row.bars, heights, strict=False)):
            track = QRectF(place.left(), top, place.width(), tall)
            paint_bar(self._painter, track, bar.share, bar.role, is_dark=self._card.is_dark)
            if index == 0 and row.ceiling is not None:
                x = track.left() + row.ceiling * track.width()
                self._painter.setPen(QPen(self._color("text"), 2.0))
                self._painter.drawLine(QPointF(x, top - 3), QPointF(x, top + tall + 3))
            top += tall + 3

    def _text(
        self,
        text: str,
        place: QRectF,
        pixels: int,
        role: str,
        weight: QFont.Weight = QFont.Weight.Normal,
        flags: Qt.AlignmentFlag = LEFT,
    ) -> float:
        """Paint a line, cut with dots where it is too long, and return its width."""
        font = sheet_font(pixels, weight)
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, place.width())
        self._painter.setFont(font)
        self._painter.setPen(self._color(role))
        self._painter.drawText(place, int(flags), shown)
        return metrics.horizontalAdvance(shown)

    def _width(self, text: str, pixels: int, weight: QFont.Weight = QFont.Weight.Normal) -> float:
        return QFontMetricsF(sheet_font(pixels, weight)).horizontalAdvance(text) + 1

    def _color(self, role: str) -> QColor:
        return sheet_color(role, is_dark=self._card.is_dark)


def _icon() -> QImage:
    try:
        return QImage(str(resource_path("app/gpu-studio.png")))
    except MissingResourceError:
        return QImage()
