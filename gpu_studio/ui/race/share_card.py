"""The picture that a race is saved as: 1200 × 630 pixels, with the race itself in a text chunk.

The terminal has no Qt in its own process, so a child of it paints (`process/child_call.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QPainter, QPainterPath

from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.core.race.shared_race import CHUNK, decode_order, encode_shared
from gpu_studio.core.units import format_size, three_digits
from gpu_studio.ui.card_sheet import (
    LEFT,
    RIGHT,
    SIZE,
    WRAPPED,
    fitting_font,
    new_sheet,
    paint_bar,
    painting_application,
    sheet_color,
    sheet_font,
    with_text,
)
from gpu_studio.ui.png import png_bytes
from gpu_studio.ui.race.framed_picture import image_of, paint_framed
from gpu_studio.ui.theme import numbered_role, side_role

if TYPE_CHECKING:
    from gpu_studio.core.messages.race_messages import ContestantResult
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.core.race.shared_race import PictureOrder, SharedRace, SharedRun

_MARGIN, _GAP, _RADIUS = 48.0, 24.0, 10.0
_PICTURE_TOP, _PICTURE_HEIGHT = 168.0, 268.0
_BAR_TOP, _BAR_HEIGHT, _BAR_STEP = 462.0, 34.0, 48.0
_FOOT_TOP = 572.0
_MOST_SHOWN = 2  # two pictures and two bars can be read in a small preview
_LEAST_PIXELS, _HEADLINE_PIXELS = 20, 42


def paint_card(order: PictureOrder) -> QImage:
    """Return the card of a race, with its text chunk."""
    image, painter = new_sheet()
    shared = order.shared
    _paint_head(painter, shared)
    shown = _shown(shared)
    for place, index in enumerate(shown):
        picture = order.pictures[index] if index < len(order.pictures) else None
        _paint_picture(painter, place, shared.runs[index], picture, _role(order, index))
    _paint_bars(painter, order, shown)
    _paint_foot(painter, shared)
    painter.end()
    return with_text(image, CHUNK, encode_shared(shared))


def png_of_card(order: PictureOrder) -> bytes:
    """Return the PNG file of a race's card."""
    return png_bytes(paint_card(order))


def _shown(shared: SharedRace) -> list[int]:
    """Return the contestants on the card: of many, the fastest and the slowest, in their order."""
    contestants = shared.race.contestants
    if len(contestants) <= _MOST_SHOWN:
        return list(range(len(contestants)))
    by_time = sorted(range(len(contestants)), key=lambda index: _seconds_a_step(contestants[index]))
    return sorted([by_time[0], by_time[-1]])


def _paint_head(painter: QPainter, shared: SharedRace) -> None:
    painter.setPen(sheet_color("muted"))
    painter.setFont(sheet_font(22, QFont.Weight.DemiBold))
    head = QRectF(_MARGIN, 30, SIZE[0] - 2 * _MARGIN, 34)
    painter.drawText(head, LEFT, "GPU Studio · Race")
    if shared.tone == "amber":
        painter.setPen(sheet_color("amber"))
        doubt = shared.doubts[0] if shared.doubts else "Some of this is in doubt"
        font = sheet_font(18, QFont.Weight.DemiBold)
        painter.setFont(font)
        right = QRectF(head)
        right.setLeft(head.left() + 300)
        text = QFontMetricsF(font).elidedText(
            f"▲ {doubt}", Qt.TextElideMode.ElideRight, right.width()
        )
        painter.drawText(right, RIGHT, text)
    painter.setPen(sheet_color("text"))
    place = QRectF(_MARGIN, 66, SIZE[0] - 2 * _MARGIN, 94)
    painter.setFont(fitting_font(shared.race.sentence, place, (_LEAST_PIXELS, _HEADLINE_PIXELS)))
    painter.drawText(place, WRAPPED, shared.race.sentence)


def _paint_picture(
    painter: QPainter, place: int, run: SharedRun, picture: PackedFrame | None, role: str
) -> None:
    width = (SIZE[0] - 2 * _MARGIN - _GAP) / 2
    frame = QRectF(_MARGIN + place * (width + _GAP), _PICTURE_TOP, width, _PICTURE_HEIGHT)
    image = image_of(picture)
    paint_framed(painter, frame, image, ground=sheet_color("track"), radius=_RADIUS)
    _paint_name(painter, run.name, role, frame)


def _paint_name(painter: QPainter, name: str, role: str, frame: QRectF) -> None:
    font = sheet_font(20, QFont.Weight.DemiBold)
    metrics = QFontMetricsF(font)
    text = metrics.elidedText(name, Qt.TextElideMode.ElideRight, frame.width() - 90)
    chip = QRectF(frame.left() + 12, frame.top() + 12, metrics.horizontalAdvance(text) + 62, 38)
    outline = QPainterPath()
    outline.addRoundedRect(chip, chip.height() / 2, chip.height() / 2)
    painter.fillPath(outline, sheet_color("card"))
    swatch = QPainterPath()
    swatch.addRoundedRect(QRectF(chip.left() + 16, chip.center().y() - 8, 16, 16), 4, 4)
    painter.fillPath(swatch, sheet_color(role))
    painter.setPen(sheet_color("text"))
    painter.setFont(font)
    painter.drawText(chip.adjusted(42, 0, 0, 0), LEFT, text)


def _paint_bars(painter: QPainter, order: PictureOrder, shown: list[int]) -> None:
    shared = order.shared
    contestants = shared.race.contestants
    left, right = _MARGIN, SIZE[0] - _MARGIN
    picture = _picture_of(shared)
    unit = picture.race.step_title if picture is not None and picture.race is not None else "steps"
    ends = [one.seconds for one in contestants if one.reached and one.verified is not False]
    finish_s = min(ends, default=None)
    values = {index: _value(contestants[index], unit) for index in shown}
    metrics = QFontMetricsF(sheet_font(24, QFont.Weight.DemiBold))
    room = max((metrics.horizontalAdvance(text) for text in values.values()), default=0.0) + _GAP
    for row, index in enumerate(shown):
        place = QRectF(left, _BAR_TOP + row * _BAR_STEP, right - left - room, _BAR_HEIGHT)
        paint_bar(painter, place, _share(contestants[index], finish_s), _role(order, index))
        painter.setPen(sheet_color("text"))
        painter.setFont(sheet_font(24, QFont.Weight.DemiBold))
        painter.drawText(
            QRectF(right - room, place.top(), room, place.height()), RIGHT, values[index]
        )


def _paint_foot(painter: QPainter, shared: SharedRace) -> None:
    picture = _picture_of(shared)
    painter.setPen(sheet_color("muted"))
    font = sheet_font(20)
    painter.setFont(font)
    foot = QRectF(_MARGIN, _FOOT_TOP, SIZE[0] - 2 * _MARGIN, 32)
    day = _day(shared.made_at)
    day_width = QFontMetricsF(font).horizontalAdvance(day) + _GAP
    torch = f"PyTorch {shared.torch_version}" if shared.torch_version else ""
    dtypes = " against ".join(dict.fromkeys(one.dtype for one in shared.race.contestants))
    size = format_size(shared.race.size, picture.size_text) if picture is not None else ""
    title = picture.title if picture is not None else shared.race.picture
    facts = " · ".join(
        filter(None, (title, size, dtypes, shared.card_name, shared.cpu_name, torch))
    )
    room = foot.width() - day_width
    text = QFontMetricsF(font).elidedText(facts, Qt.TextElideMode.ElideRight, room)
    painter.drawText(foot, LEFT, text)
    painter.drawText(foot, RIGHT, day)


def _value(result: ContestantResult, unit: str) -> str:
    """Return a contestant's pace and its power, or that it did not come to an end."""
    if result.verified is False:
        return "wrong result"
    if result.failure or not result.seconds:
        return "stopped early"
    power = f" · {result.power_w:.0f}\u202fW" if result.power_w is not None else ""
    return f"{three_digits(result.steps / result.seconds)} {unit}/s{power}"


def _share(result: ContestantResult, finish_s: float | None) -> float:
    """Return the share of all steps, 0 to 1; wrong results are no progress.

    It is that when the first one finished, as on the pictures: a slower side may have gone on for
    a turn. Without a finish, it is that at the end.
    """
    if result.verified is False:
        return 0.0
    if not result.finish_steps:
        return 1.0 if result.reached else 0.0
    steps: float = result.steps
    if finish_s is not None and result.seconds > finish_s:
        steps *= finish_s / result.seconds
    return min(steps / result.finish_steps, 1.0)


def _seconds_a_step(result: ContestantResult) -> float:
    return result.seconds / max(result.steps, 1)


def _picture_of(shared: SharedRace) -> WorkloadDescription | None:
    return next((one for one in PICTURES if one.name == shared.race.picture), None)


def _role(order: PictureOrder, index: int) -> str:
    contestants = order.shared.race.contestants
    own = order.roles or [numbered_role(one.device) for one in contestants]
    return side_role(own[index], index, own)


def _day(made_at: str) -> str:
    try:
        return datetime.fromisoformat(made_at).strftime("%Y-%m-%d")
    except ValueError:
        return ""


def answer(content: bytes) -> bytes:
    """Return the PNG file of a `PictureOrder` in JSON; the whole work of a child process."""
    order = decode_order(content)
    with painting_application():
        return png_of_card(order)
