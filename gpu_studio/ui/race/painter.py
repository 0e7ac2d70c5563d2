"""Paints a race for a file: a PNG with the race inside, or an animation as a WebP file.

Both show the stage. Qt compresses each frame of an animation as a picture of its own; the container
around them is RIFF with the chunks VP8X, ANIM and ANMF
(developers.google.com/speed/webp/docs/riff_container).

Painting takes seconds, and the terminal has no Qt, so a child process paints for both
(`process/child_call.py`).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImageWriter

from gpu_studio.core.race.picture_file import CHUNK
from gpu_studio.core.race.stage_view import decode_order
from gpu_studio.ui.race.race_stage import painted
from gpu_studio.ui.saving import painting_theme, png_bytes
from gpu_studio.ui.theme import COLOURS, side_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QImage

    from gpu_studio.core.race.stage_view import PaintOrder, StageView
    from gpu_studio.ui.theme import Theme

LARGEST_BYTES = 8_000_000
_QUALITIES = (82, 68, 50, 30)
_HEAD_BYTES = 12
_ANIMATES = 0x02


def answer(content: bytes) -> bytes:
    """Return the file of an order in MessagePack; the whole work of a child process.

    Raises:
        ValueError: Qt cannot write WebP here, or the file would be too large.
    """
    order = decode_order(content)
    with painting_theme() as theme:
        return painted_file(order, theme)


def painted_file(order: PaintOrder, theme: Theme) -> bytes:
    """Return the PNG file of one moment, or the WebP file of several, of at most 8 MB.

    Raises:
        ValueError: Qt cannot write WebP here, or the file would be larger.
    """
    views = [_colored(view, theme) for view, _ in order.moments]
    frames = list(painted(views, order.size, theme))
    if len(frames) == 1:
        frames[0].setText(CHUNK, order.text)
        frames[0].setText("Software", "GPU Studio")
        return png_bytes(frames[0])
    durations_ms = [shown_ms for _, shown_ms in order.moments]
    for quality in _QUALITIES:
        pictures = [_webp_of(frame, quality) for frame in frames]
        content = _animated(pictures, order.size, durations_ms)
        if len(content) <= LARGEST_BYTES:
            return content
    message = "the animation would have more than 8 MB"
    raise ValueError(message)


def _colored(view: StageView, theme: Theme) -> StageView:
    """Return a moment with color roles; the terminal knows only its devices."""
    roles = [one.role if one.role in COLOURS else theme.device_role(one.role) for one in view.lanes]
    lanes = (
        lane._replace(role=side_role(roles[number], number, roles))
        for number, lane in enumerate(view.lanes)
    )
    return view._replace(lanes=tuple(lanes))


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
