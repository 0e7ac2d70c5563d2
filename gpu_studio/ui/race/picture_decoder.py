"""Decodes a stranger's picture file, in a child process: the whole work of `answer`.

Here a file may take all time and memory, or crash this process. It may name other files (SVG), so
only five kinds are decoded, each by its own decoder, chosen by the file's first bytes.
"""

from __future__ import annotations

import contextlib
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
from PySide6.QtGui import QColor, QImage, QImageIOHandler, QImageReader, QPainter, QTransform

from gpu_studio.core.png_chunks import (
    CHECKSUM_BYTES,
    CHUNK_HEAD_BYTES,
    PNG_HEAD,
    png_chunks,
    png_text,
)
from gpu_studio.core.race.frame_file import LARGEST_SIDE
from gpu_studio.core.race.picture_answer import (
    DAMAGED,
    DAMAGED_OR_LARGE,
    MEMORY_BYTES,
    NEEDS_MEMORY,
    NO_PICTURE,
    DecodedPicture,
    FoundRace,
    PictureAnswer,
    RefusedPicture,
    encode_answer,
)
from gpu_studio.core.race.picture_file import PictureKind, kind_of, orientation_of
from gpu_studio.core.race.shared_race import CHUNK, LARGEST_BYTES
from gpu_studio.core.user_file import UnusableFileError, open_user_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

LARGEST_PIXELS = 100_000_000
_HEAD_BYTES = 16
_STANDARD_ERROR = 2
_NEEDED = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
_LIGHT_PIXELS = 30_000_000  # of 16 bytes each
# A turn and a mirror for each orientation of Exif.
_WAYS = {
    2: QTransform(-1, 0, 0, 1, 0, 0),
    3: QTransform(-1, 0, 0, -1, 0, 0),
    4: QTransform(1, 0, 0, -1, 0, 0),
    5: QTransform(0, 1, 1, 0, 0, 0),
    6: QTransform(0, 1, -1, 0, 0, 0),
    7: QTransform(0, -1, -1, 0, 0, 0),
    8: QTransform(0, -1, 1, 0, 0, 0),
}


def answer(content: bytes) -> bytes:
    """Return the `PictureAnswer` for the path of a file, as the file system spells it."""
    application = QCoreApplication([])  # without it, Qt does not find its decoders
    QLoggingCategory.setFilterRules("*=false")
    with _silence():
        found = decode(Path(os.fsdecode(content)))
    application.quit()
    return encode_answer(found)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Let no library write to standard error what a stranger's file makes it complain about."""
    kept, null = os.dup(_STANDARD_ERROR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, _STANDARD_ERROR)
    try:
        yield
    finally:
        os.dup2(kept, _STANDARD_ERROR)
        os.close(kept)
        os.close(null)


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
        if kind is None:
            return RefusedPicture(NO_PICTURE)
        if kind is PictureKind.PNG:
            race = png_text(file, CHUNK.encode(), LARGEST_BYTES)
            if race is not None:
                return FoundRace(race.decode("latin-1"))
        orientation = orientation_of(file, kind)
        file.seek(0)
        return _decoded(file, kind, orientation)


def _decoded(file: BinaryIO, kind: PictureKind, orientation: int) -> PictureAnswer:
    """Return the first picture in a file, small, upright and on white."""
    device: QIODevice
    if kind is PictureKind.PNG:
        device = _PngPixels(file)
        device.open(QIODevice.OpenModeFlag.ReadOnly)
    else:
        device = QFile()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        device.open(file.fileno(), QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(device, QByteArray(kind.value.encode()))
    reader.setAutoDetectImageFormat(False)
    reader.setAutoTransform(False)
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
    size = _fitting(size)
    if reader.supportsOption(QImageIOHandler.ImageOption.ScaledSize):
        reader.setScaledSize(size)  # JPEG is smaller before it is decoded
    image = reader.read()
    if not image.isNull() and image.size() != size:
        # In place: a second copy of a large picture would be too much.
        image.convertTo(QImage.Format.Format_ARGB32_Premultiplied)
        image = image.scaled(
            _fitting(image.size()),
            Qt.AspectRatioMode.IgnoreAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
    if image.isNull():
        return RefusedPicture(DAMAGED if pixels < _LIGHT_PIXELS else DAMAGED_OR_LARGE)
    return picture_of(image, orientation)


def _fitting(size: QSize) -> QSize:
    """Return the size of a picture that is made small, in its own shape."""
    if max(size.width(), size.height()) > LARGEST_SIDE:
        size = size.scaled(LARGEST_SIDE, LARGEST_SIDE, Qt.AspectRatioMode.KeepAspectRatio)
    return size.expandedTo(QSize(1, 1))


class _PngPixels(QIODevice):
    """Reads a PNG file without what its pixels do not need.

    Qt inflates every text and profile that is in a file, and most of those are larger then.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._parts = self._needed()
        self._place, self._left = 0, 0

    def isSequential(self) -> bool:
        """Return that it cannot be read twice."""
        return True

    def readData(self, most: int) -> bytes:
        """Return the next bytes."""
        while most and not self._left:
            part = next(self._parts, None)
            if part is None:
                return b""
            self._place, self._left = part
        self._file.seek(self._place)
        data = self._file.read(min(most, self._left))
        self._place, self._left = self._place + len(data), self._left - len(data)
        if most and not data:  # cut off in the middle
            self._left, self._parts = 0, iter(())
        return data

    def _needed(self) -> Iterator[tuple[int, int]]:
        """Yield the place and the size of each part."""
        yield 0, len(PNG_HEAD)
        for chunk in png_chunks(self._file):
            if chunk.kind in _NEEDED:
                whole = CHUNK_HEAD_BYTES + chunk.size + CHECKSUM_BYTES
                yield chunk.place - CHUNK_HEAD_BYTES, whole


def picture_of(image: QImage, orientation: int) -> DecodedPicture:
    """Return the pixels of an image on white, turned as Exif says."""
    if image.format() is QImage.Format.Format_CMYK8888:  # which Qt converts, but does not draw
        image = image.convertToFormat(QImage.Format.Format_RGB32)
    if orientation in _WAYS:
        image = image.transformed(_WAYS[orientation])
    plain = QImage(image.size(), QImage.Format.Format_RGB888)
    plain.fill(QColor("white"))
    painter = QPainter(plain)
    painter.drawImage(0, 0, image)
    painter.end()
    line, width = plain.bytesPerLine(), 3 * plain.width()
    pixels = bytes(plain.constBits())
    rows = (pixels[at : at + width] for at in range(0, line * plain.height(), line))
    return DecodedPicture(plain.width(), plain.height(), b"".join(rows))
