"""Opens a picture of yours for a race: any format that Qt reads, made small and plain.

Called in a thread: decoding a large photo takes seconds. Nothing here draws or needs a window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QSize, Qt
from PySide6.QtGui import QColor, QImage, QImageReader, QPainter

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.race.frame_file import LARGEST_SIDE
from gpu_studio.core.race.photo_file import Photo
from gpu_studio.core.race.shared_race import CHUNK, SharedRace, decode_shared
from gpu_studio.core.user_file import UnusableFileError, read_user_file

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LARGEST_PIXELS = 100_000_000
_LARGEST_BYTES = 256 << 20


def open_photo(path: Path) -> Photo | SharedRace:
    """Return the picture in a file, or the race that is saved in it.

    An animation gives its first picture. What is transparent becomes white.

    Raises:
        StudioError: the file cannot be read, is no picture, is broken, or has too many pixels.
    """
    try:
        content = read_user_file(path, _LARGEST_BYTES)
    except UnusableFileError as error:
        raise _refused(path, str(error)) from error
    buffer = QBuffer()
    buffer.setData(QByteArray(content))
    buffer.open(QIODevice.OpenModeFlag.ReadOnly)
    reader = QImageReader(buffer)
    reader.setAutoTransform(True)
    if not reader.canRead():
        raise _refused(path, "it is not a picture")
    size = reader.size()
    if size.isValid() and size.width() * size.height() > LARGEST_PIXELS:
        millions = size.width() * size.height() / 1e6
        raise _refused(path, f"it has {millions:.0f} megapixels, and 100 is the limit")
    chunk = reader.text(CHUNK)
    if chunk:
        return decode_shared(chunk)
    _allow_large(reader)
    image = reader.read()
    if image.isNull() or image.width() * image.height() > LARGEST_PIXELS:
        raise _refused(path, "it is damaged")
    return Photo(path.name, pixels_of(_reduced(image)))


def pixels_of(image: QImage) -> NDArray[np.uint8]:
    """Return the pixels of an image, shape (height, width, 3), on white."""
    if image.format() is QImage.Format.Format_CMYK8888:  # which Qt converts, but does not draw
        image = image.convertToFormat(QImage.Format.Format_RGB32)
    plain = QImage(image.size(), QImage.Format.Format_RGB888)
    plain.fill(QColor("white"))
    painter = QPainter(plain)
    painter.drawImage(0, 0, image)
    painter.end()
    height, width, line = plain.height(), plain.width(), plain.bytesPerLine()
    rows = np.frombuffer(plain.constBits(), np.uint8).reshape(height, line)
    pixels: NDArray[np.uint8] = rows[:, : 3 * width].reshape(height, width, 3).copy()
    return pixels


def _reduced(image: QImage) -> QImage:
    """Return an image of at most 512 on each side, and at least 1."""
    size = image.size()
    if max(size.width(), size.height()) > LARGEST_SIDE:
        size.scale(LARGEST_SIDE, LARGEST_SIDE, Qt.AspectRatioMode.KeepAspectRatio)
        image = image.scaled(
            size.expandedTo(QSize(1, 1)),
            Qt.AspectRatioMode.IgnoreAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
    return image


def _allow_large(reader: QImageReader) -> None:
    """Let Qt decode 100 megapixels of 8 bytes; its own limit is 256 MiB."""
    needed_mib = LARGEST_PIXELS * 8 >> 20
    if reader.allocationLimit() and reader.allocationLimit() < needed_mib:
        reader.setAllocationLimit(needed_mib)


def _refused(path: Path, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{path.name} cannot be learned: {reason}.")
