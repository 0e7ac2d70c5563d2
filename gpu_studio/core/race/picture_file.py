"""The beginning of a picture file: its kind, and how the camera was held.

A file's kind is that of its first bytes, never that of its name: the name decides nothing about
what a decoder will meet. The orientation is a field of Exif (CIPA DC-008, tag 0x0112), which JPEG
keeps in the segment APP1, PNG in the chunk eXIf, and WebP in the chunk EXIF.
"""

from __future__ import annotations

import os
import struct
from enum import Enum
from typing import TYPE_CHECKING

from gpu_studio.core.png_chunks import PNG_HEAD, png_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

UPRIGHT = 1
_TAG, _SHORT = 0x0112, 3
_MOST_PARTS = 20_000
_LARGEST_EXIF_BYTES = 1 << 20
_APP1, _PIXELS = 0xE1, 0xDA  # JPEG's segments with Exif, and with the pixels
_RIFF_BYTES = 12
_EXIF = b"Exif\0\0"


class PictureKind(Enum):
    """A kind of picture; the value is its name in Qt."""

    PNG = "png"
    JPEG = "jpeg"
    WEBP = "webp"
    BMP = "bmp"
    GIF = "gif"


def kind_of(head: bytes) -> PictureKind | None:
    """Return the kind of a file by its first 16 bytes; None for no picture of these kinds."""
    kind = None
    if head.startswith(PNG_HEAD):
        kind = PictureKind.PNG
    elif head.startswith(b"\xff\xd8\xff"):
        kind = PictureKind.JPEG
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = PictureKind.WEBP
    elif head.startswith((b"GIF87a", b"GIF89a")):
        kind = PictureKind.GIF
    elif head.startswith(b"BM"):
        kind = PictureKind.BMP
    return kind


def orientation_of(file: BinaryIO, kind: PictureKind) -> int:
    """Return how a picture has to be turned: 1 to 8, as in Exif; 1 if it does not say.

    Args:
        file: the picture's file; its place changes.
        kind: its kind.
    """
    found: Iterator[bytes] = iter(())
    if kind is PictureKind.JPEG:
        found = _segments(file)
    elif kind is PictureKind.PNG:
        found = _png_exif(file)
    elif kind is PictureKind.WEBP:
        found = _webp_exif(file)
    return _orientation_in(next(found, b"").removeprefix(_EXIF))


def _segments(file: BinaryIO) -> Iterator[bytes]:
    """Yield the Exif segments of a JPEG file before its pixels."""
    file.seek(2)
    for _ in range(_MOST_PARTS):
        head = file.read(4)
        if len(head) < 4 or head[0] != 0xFF or head[1] == _PIXELS:
            return
        body = file.read(max(int.from_bytes(head[2:], "big") - 2, 0))
        if head[1] == _APP1 and body.startswith(_EXIF):
            yield body


def _png_exif(file: BinaryIO) -> Iterator[bytes]:
    for chunk in png_chunks(file):
        if chunk.kind == b"eXIf":
            file.seek(chunk.place)
            yield file.read(min(chunk.size, _LARGEST_EXIF_BYTES))


def _webp_exif(file: BinaryIO) -> Iterator[bytes]:
    file.seek(_RIFF_BYTES)
    for _ in range(_MOST_PARTS):
        head = file.read(8)
        size = int.from_bytes(head[4:], "little")
        if len(head) < 8:
            return
        if head[:4] == b"EXIF":
            yield file.read(min(size, _LARGEST_EXIF_BYTES))
            return
        file.seek(size + size % 2, os.SEEK_CUR)  # a chunk is filled up to an even size


def _orientation_in(exif: bytes) -> int:
    """Return the orientation in the first directory of a TIFF structure."""
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None or len(exif) < 8:
        return UPRIGHT
    try:
        (place,) = struct.unpack_from(f"{order}I", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, place)
        for number in range(count):
            tag, form, _, value = struct.unpack_from(f"{order}HHIH", exif, place + 2 + 12 * number)
            if tag == _TAG and form == _SHORT:
                return value if 1 <= value <= 8 else UPRIGHT
    except struct.error:  # it ends too early
        pass
    return UPRIGHT
