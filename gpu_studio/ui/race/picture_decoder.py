"""Decodes a stranger's picture file, in a child process: the whole work of `answer`.

Here a file may take all time and memory, or crash this process. It may name other files (SVG), so
only five kinds are decoded, each by its own decoder, chosen by the file's first bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QFile,
    QIODevice,
    QLoggingCategory,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QImage, QImageIOHandler, QImageReader, QPainter

from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE, PackedFrame, pack_rows
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.race.picture_file import (
    CHUNK,
    DAMAGED,
    DAMAGED_OR_LARGE,
    LARGEST_BYTES,
    MEMORY_BYTES,
    NEEDS_MEMORY,
    NO_PICTURE,
    DecodedPicture,
    FoundRace,
    PictureAnswer,
    RefusedPicture,
    encode_answer,
)
from gpu_studio.core.user_file import UnusableFileError, open_user_file

if TYPE_CHECKING:
    from typing import BinaryIO

LARGEST_PIXELS = 100_000_000
_HEAD_BYTES = 16
_LIGHT_PIXELS = 30_000_000  # of 16 bytes each
_PNG = "png"


def kind_of(head: bytes) -> str:
    """Return Qt's name of a picture's kind by its first 16 bytes; empty for any other file.

    A file's name decides nothing about what a decoder will meet.
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    kinds = {
        PNG_HEAD: _PNG,
        b"\xff\xd8\xff": "jpeg",
        b"GIF87a": "gif",
        b"GIF89a": "gif",
        b"BM": "bmp",
    }
    return next((kind for begin, kind in kinds.items() if head.startswith(begin)), "")


def answer(content: bytes) -> bytes:
    """Return the `PictureAnswer` for the path of a file, as the file system spells it."""
    application = QCoreApplication([])  # without it, Qt does not find its decoders
    QLoggingCategory.setFilterRules("*=false")
    found = decode(Path(os.fsdecode(content)))
    application.quit()
    return encode_answer(found)


def decode(path: Path) -> PictureAnswer:
    """Return the picture in a file, the race that is saved in it, or why there is neither."""
    try:
        return _opened(path)
    except UnusableFileError as error:
        return RefusedPicture(str(error)[:200])
    except OSError as error:
        return RefusedPicture(f"it cannot be read ({error.strerror or error})"[:200])
    except MemoryError:
        return RefusedPicture(NEEDS_MEMORY)


def _opened(path: Path) -> PictureAnswer:
    with open_user_file(path) as file:
        kind = kind_of(file.read(_HEAD_BYTES))
        if not kind:
            return RefusedPicture(NO_PICTURE)
        if kind == _PNG:
            race = png_text(file, CHUNK.encode(), LARGEST_BYTES)
            if race is not None:
                return FoundRace(race.decode("latin-1"))
        return _decoded(file, kind)


def _decoded(file: BinaryIO, kind: str) -> PictureAnswer:
    """Return the first picture in a file, small, upright and on white."""
    device = QFile()
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    device.open(file.fileno(), QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(device, QByteArray(kind.encode()))
    reader.setAutoDetectImageFormat(False)
    reader.setAutoTransform(True)
    QImageReader.setAllocationLimit(MEMORY_BYTES >> 20)
    size = reader.size()
    if size.isEmpty():
        return RefusedPicture(DAMAGED)
    pixels = size.width() * size.height()
    if pixels > LARGEST_PIXELS:
        return RefusedPicture(
            f"it has {size.width():,} × {size.height():,} pixels, and "
            f"{LARGEST_PIXELS // 1_000_000} megapixels is the limit. Make it smaller first"
        )
    if reader.supportsOption(QImageIOHandler.ImageOption.ScaledSize):
        reader.setScaledSize(_fitting(size))  # JPEG is smaller before it is decoded
    image = reader.read()
    if not image.isNull() and image.size() != _fitting(image.size()):
        # In place: a second copy of a large picture would be too much.
        image.convertTo(QImage.Format.Format_ARGB32_Premultiplied)
        image = image.scaled(
            _fitting(image.size()),
            Qt.AspectRatioMode.IgnoreAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
    if image.isNull():
        return RefusedPicture(DAMAGED if pixels < _LIGHT_PIXELS else DAMAGED_OR_LARGE)
    return picture_of(image)


def _fitting(size: QSize) -> QSize:
    """Return the size of a picture that is made small, in its own shape."""
    if max(size.width(), size.height()) > LARGEST_FRAME_SIDE:
        size = size.scaled(
            LARGEST_FRAME_SIDE, LARGEST_FRAME_SIDE, Qt.AspectRatioMode.KeepAspectRatio
        )
    return size.expandedTo(QSize(1, 1))


def picture_of(image: QImage) -> DecodedPicture:
    """Return the pixels of an image on white."""
    if image.format() is QImage.Format.Format_CMYK8888:  # which Qt converts, but does not draw
        image = image.convertToFormat(QImage.Format.Format_RGB32)
    plain = QImage(image.size(), QImage.Format.Format_RGB888)
    plain.fill(QColor("white"))
    painter = QPainter(plain)
    painter.drawImage(0, 0, image)
    painter.end()
    line, width = plain.bytesPerLine(), 3 * plain.width()
    pixels = bytes(plain.constBits())
    rows = (pixels[at : at + width] for at in range(0, line * plain.height(), line))
    packed = pack_rows(b"".join(rows))
    return DecodedPicture(PackedFrame(packed, plain.width(), plain.height()))
