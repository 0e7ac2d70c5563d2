"""The text in a PNG file: this program's own texts travel so.

A file comes from anywhere: a text is inflated only if its keyword is the wanted one, and only up to
a size. The source is W3C PNG, sections 5.3 and 11.3.3.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

PNG_HEAD = b"\x89PNG\r\n\x1a\n"
_HEAD_BYTES, _CHECKSUM_BYTES = 8, 4
_LONGEST_KEYWORD = 79
_MOST_CHUNKS = 50_000  # the pixels of a large picture come in thousands
_MOST_TEXTS = 100
_PACKED = b"\1"


def png_text(file: BinaryIO, keyword: bytes, most_bytes: int) -> bytes | None:
    """Return the first text with a keyword; None if there is none, empty if it is damaged.

    Args:
        file: a PNG file; its place changes.
        keyword: whose text is wanted.
        most_bytes: of a longer text, one byte more is returned.
    """
    place, texts = len(PNG_HEAD), 0
    for _ in range(_MOST_CHUNKS):
        file.seek(place)
        head = file.read(_HEAD_BYTES)
        if len(head) < _HEAD_BYTES or texts == _MOST_TEXTS:
            return None
        size, kind = int.from_bytes(head[:4], "big"), head[4:]
        if kind in (b"tEXt", b"zTXt", b"iTXt"):
            texts += 1
            found, zero, _ = file.read(min(size, _LONGEST_KEYWORD + 1)).partition(b"\0")
            if zero and found == keyword:
                file.seek(place + _HEAD_BYTES + len(keyword) + 1)
                body = file.read(min(size - len(keyword) - 1, most_bytes + 1))
                return _text(kind, body, most_bytes)
        place += _HEAD_BYTES + size + _CHECKSUM_BYTES
    return None


def _text(kind: bytes, body: bytes, most_bytes: int) -> bytes:
    """Return the text of a chunk without its keyword."""
    is_packed = kind == b"zTXt"
    if is_packed:
        body = body[1:]  # the one way to compress
    elif kind == b"iTXt":
        is_packed = body[:1] == _PACKED
        # The way to compress, the language and the keyword in it.
        body = b"\0".join(body[2:].split(b"\0", 2)[2:])
    if not is_packed:
        return body
    try:
        return zlib.decompressobj().decompress(body, most_bytes + 1)
    except zlib.error:
        return b""
