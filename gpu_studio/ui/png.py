"""A painted image as the contents of a PNG file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice

if TYPE_CHECKING:
    from PySide6.QtGui import QImage


def png_bytes(image: QImage) -> bytes:
    """Return the PNG file of an image, with its text chunks."""
    contents = QByteArray()
    buffer = QBuffer(contents)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs say bytes
    return bytes(contents.data())
