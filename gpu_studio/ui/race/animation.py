"""The race as an animation that one can post: both pictures with their clocks, as a WebP file.

Qt compresses each frame as a picture of its own. The container around them is RIFF with the chunks
VP8X, ANIM and ANMF (developers.google.com/speed/webp/docs/riff_container).

Painting and compressing take seconds, so a child process does it (`process/child_call.py`).
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF
from PySide6.QtGui import QColor, QGuiApplication, QImage, QImageWriter, QPainter

from gpu_studio.core.race.animation_order import AnimationOrder, decode_animation
from gpu_studio.core.race.photo import Detail
from gpu_studio.ui.race.framed_picture import image_of
from gpu_studio.ui.race.stage import StageSide, StageView, paint_stage
from gpu_studio.ui.theme import COLOURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.race.animation_order import AnimatedMoment, AnimatedSide

SIZE = (960, 540)
LARGEST_BYTES = 8_000_000
_QUALITIES = (82, 68, 50, 30)
_DARK = True
_HEAD_BYTES = 12
_ANIMATES = 0x02


def webp_of(order: AnimationOrder) -> bytes:
    """Return the animation as a WebP file of at most 8 MB.

    Raises:
        ValueError: Qt cannot write WebP here, or the file would be larger.
    """
    frames = [frame_of(order, moment) for moment in order.moments]
    durations_ms = [moment.shown_ms for moment in order.moments]
    for quality in _QUALITIES:
        content = animated([_webp_of(frame, quality) for frame in frames], durations_ms)
        if len(content) <= LARGEST_BYTES:
            return content
    message = "the animation would have more than 8 MB"
    raise ValueError(message)


def frame_of(order: AnimationOrder, moment: AnimatedMoment) -> QImage:
    """Return a frame."""
    image = QImage(*(order.size or SIZE), QImage.Format.Format_RGB32)
    image.fill(_color("window"))
    painter = QPainter(image)
    view = StageView(
        headline=moment.headline,
        detail=moment.detail,
        sides=tuple(map(_side_of, moment.sides)),
        foot=order.foot,
        trust=moment.trust,
        is_good=order.is_good,
        lens=Detail(*order.lens) if order.lens is not None else None,
    )
    paint_stage(painter, QRectF(image.rect()), view, _color)
    painter.end()
    return image


def animated(pictures: Sequence[bytes], durations_ms: Sequence[int]) -> bytes:
    """Return the WebP files of single pictures as one that shows them again and again.

    Args:
        pictures: WebP files of one size.
        durations_ms: how long each of them is shown.

    Raises:
        ValueError: a file is none.
    """
    width, height = _size_of(pictures[0])
    chunks = [
        _chunk(b"VP8X", struct.pack("<I", _ANIMATES) + _24(width - 1) + _24(height - 1)),
        _chunk(b"ANIM", struct.pack("<IH", 0xFF000000, 0)),  # black, without an end
    ]
    for picture, duration_ms in zip(pictures, durations_ms, strict=True):
        place = _24(0) + _24(0) + _24(width - 1) + _24(height - 1) + _24(duration_ms)
        # No blending: every frame is whole.
        chunks.append(_chunk(b"ANMF", place + b"\x02" + _bitstream_of(picture)))
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _bitstream_of(picture: bytes) -> bytes:
    """Return the chunk with the picture of a WebP file."""
    if picture[:4] != b"RIFF" or picture[8:12] != b"WEBP":
        message = "this is not a WebP file"
        raise ValueError(message)
    at = _HEAD_BYTES
    while at + 8 <= len(picture):
        name, (length,) = picture[at : at + 4], struct.unpack_from("<I", picture, at + 4)
        whole = 8 + length + length % 2
        if name in (b"VP8 ", b"VP8L"):
            return picture[at : at + whole]
        at += whole
    message = "this WebP file has no picture"
    raise ValueError(message)


def _size_of(picture: bytes) -> tuple[int, int]:
    image = QImage.fromData(picture)
    return image.width(), image.height()


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


def _side_of(side: AnimatedSide) -> StageSide:
    return StageSide(side, image_of(side.picture))


def _color(role: str) -> QColor:
    return QColor(COLOURS[role][_DARK])


def answer(content: bytes) -> bytes:
    """Return the file of an `AnimationOrder` in MessagePack; the whole work of a child process.

    Raises:
        ValueError: Qt cannot write WebP here, or the file would be too large.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # it needs no screen
    order = decode_animation(content)
    application = QGuiApplication([])
    file = webp_of(order)
    application.quit()
    return file
