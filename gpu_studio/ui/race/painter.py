"""The race as a picture and as an animation to post: a PNG with the race inside, and a WebP file.

Both are painted as the stage is. Qt compresses each frame of an animation as a picture of its own;
the container around them is RIFF with the chunks VP8X, ANIM and ANMF
(developers.google.com/speed/webp/docs/riff_container).

Painting an animation takes seconds, and the terminal has no Qt, so a child process paints for both
(`process/child_call.py`).
"""

from __future__ import annotations

import os
import struct
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QImageWriter, QPainter

from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.core.race.shared_race import CHUNK, encode_shared
from gpu_studio.core.race.stage_view import FilmOrder, StageSide, StageView, decode_order
from gpu_studio.core.units import format_duration, format_size, three_digits
from gpu_studio.model.race.race_words import count_text
from gpu_studio.ui.png import png_bytes
from gpu_studio.ui.race.stage import paint_stage
from gpu_studio.ui.theme import COLOURS, numbered_role, side_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.race_messages import ContestantResult
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.shared_race import PictureOrder, SharedRace

PICTURE_SIZE = (1200, 630)
"""In this size, chats and forums show a preview without cutting it."""
LARGEST_BYTES = 8_000_000
_QUALITIES = (82, 68, 50, 30)
_MOST_SHOWN = 2  # two pictures and two bars can be read in a small preview
_HEAD_BYTES = 12
_ANIMATES = 0x02


def answer(content: bytes) -> bytes:
    """Return the file of an order in MessagePack; the whole work of a child process.

    Raises:
        ValueError: Qt cannot write WebP here, or the file would be too large.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # it needs no screen
    order = decode_order(content)
    application = QGuiApplication([])
    file = webp_of(order) if isinstance(order, FilmOrder) else png_of(order)
    application.quit()
    return file


def png_of(order: PictureOrder) -> bytes:
    """Return the picture of a race, with the race itself in a text chunk."""
    image = painted(picture_view(order), PICTURE_SIZE)
    image.setText(CHUNK, encode_shared(order.shared))
    image.setText("Software", "GPU Studio")
    return png_bytes(image)


def painted(view: StageView, size: tuple[int, int]) -> QImage:
    """Return a moment as an image of some pixels."""
    image = QImage(*size, QImage.Format.Format_RGB32)
    image.fill(_color("window"))
    painter = QPainter(image)
    paint_stage(painter, QRectF(image.rect()), view, _color)
    painter.end()
    return image


def picture_view(order: PictureOrder) -> StageView:
    """Return the moment of the first finish; of many sides, with the fastest and the slowest."""
    shared = order.shared
    contestants = shared.race.contestants
    shown = list(range(len(contestants)))
    if len(shown) > _MOST_SHOWN:
        by_pace = sorted(shown, key=lambda index: _seconds_a_step(contestants[index]))
        shown = sorted([by_pace[0], by_pace[-1]])
    roles = order.roles or [numbered_role(one.device) for one in contestants]
    ends = [one.seconds for one in contestants if one.reached and one.verified is not False]
    finish_s = min(ends, default=None)
    doubts = len(shared.doubts)
    more = f" · {doubts - 1} more" if doubts > 1 else ""
    return StageView(
        headline=order.headline,
        detail=shared.race.sentence,
        sides=tuple(
            _side_of(order, index, side_role(roles[index], index, list(roles)), finish_s)
            for index in shown
        ),
        foot=_foot_of(shared),
        trust=f"▲ {shared.doubts[0]}{more}" if shared.doubts else "",
        is_good=shared.tone == "good",
    )


def _side_of(order: PictureOrder, index: int, role: str, finish_s: float | None) -> StageSide:
    shared = order.shared
    result, run = shared.race.contestants[index], shared.runs[index]
    share = _share(result, finish_s)
    steps = min(result.steps, round(share * (result.finish_steps or result.steps)))
    seconds = min(result.seconds, finish_s or result.seconds)
    picture = _picture_of(shared)
    traits = picture.race if picture is not None else None
    is_right = result.verified is not False
    return StageSide(
        name=run.name,
        role=role,
        picture=order.pictures[index] if index < len(order.pictures) else None,
        clock=format_duration(seconds) if is_right else "",
        pace=_pace(result, traits.step_title if traits is not None else "steps"),
        steps=count_text(steps, result.finish_steps, traits) if is_right else "",
        achieved=f"{result.power_w:.0f}\u202fW" if result.power_w is not None else "",
        share=share,
        is_reached=result.reached and is_right,
    )


def _foot_of(shared: SharedRace) -> str:
    picture = _picture_of(shared)
    facts = (
        "GPU Studio",
        picture.title if picture is not None else shared.race.picture,
        format_size(shared.race.size, picture.size_text) if picture is not None else "",
        " against ".join(dict.fromkeys(one.dtype for one in shared.race.contestants)),
        shared.card_name,
        shared.cpu_name,
        f"PyTorch {shared.torch_version}" if shared.torch_version else "",
        _day(shared.made_at),
    )
    return " · ".join(filter(None, facts))


def _picture_of(shared: SharedRace) -> WorkloadDescription | None:
    return next((one for one in PICTURES if one.name == shared.race.picture), None)


def _pace(result: ContestantResult, unit: str) -> str:
    """Return a contestant's pace, or that it did not come to an end."""
    if result.verified is False:
        return "wrong result"
    if result.failure or not result.seconds:
        return "stopped early"
    return f"{three_digits(result.steps / result.seconds)} {unit}/s"


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


def _day(made_at: str) -> str:
    try:
        return datetime.fromisoformat(made_at).strftime("%Y-%m-%d")
    except ValueError:
        return ""


def _color(role: str) -> QColor:
    return QColor(COLOURS[role][True])  # dark


def webp_of(order: FilmOrder) -> bytes:
    """Return the animation as a WebP file of at most 8 MB.

    Raises:
        ValueError: Qt cannot write WebP here, or the file would be larger.
    """
    frames = [painted(view, order.size) for view, _ in order.moments]
    durations_ms = [shown_ms for _, shown_ms in order.moments]
    for quality in _QUALITIES:
        content = _animated(
            [_webp_of(frame, quality) for frame in frames], order.size, durations_ms
        )
        if len(content) <= LARGEST_BYTES:
            return content
    message = "the animation would have more than 8 MB"
    raise ValueError(message)


def _animated(
    pictures: Sequence[bytes], size: tuple[int, int], durations_ms: Sequence[int]
) -> bytes:
    """Return the WebP files of single pictures as one that shows them again and again."""
    shape = b"".join(_24(length - 1) for length in size)
    chunks = [
        _chunk(b"VP8X", struct.pack("<I", _ANIMATES) + shape),
        _chunk(b"ANIM", struct.pack("<IH", 0xFF000000, 0)),  # black, without an end
    ]
    for picture, duration_ms in zip(pictures, durations_ms, strict=True):
        place = _24(0) + _24(0) + shape + _24(duration_ms)
        # No blending: every frame is whole.
        chunks.append(_chunk(b"ANMF", place + b"\x02" + _bitstream_of(picture)))
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _bitstream_of(picture: bytes) -> bytes:
    """Return the chunk with the picture of a WebP file."""
    at = _HEAD_BYTES
    while at + 8 <= len(picture):
        name, (length,) = picture[at : at + 4], struct.unpack_from("<I", picture, at + 4)
        whole = 8 + length + length % 2
        if name in (b"VP8 ", b"VP8L"):
            return picture[at : at + whole]
        at += whole
    message = "Qt wrote a WebP file without a picture"
    raise ValueError(message)


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def _24(number: int) -> bytes:
    return struct.pack("<I", number)[:3]


def _webp_of(image: QImage, quality: int) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"webp"))
    writer.setQuality(quality)
    if not writer.write(image):
        message = f"Qt cannot write WebP here ({writer.errorString()})"
        raise ValueError(message)
    return bytes(buffer.data().data())
