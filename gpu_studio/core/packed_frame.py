"""A frame of a race inside a line of a recording: its rows of RGB bytes, packed with zlib."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CHANNELS = 3


def pack_frame(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture of shape (height, width, 3) in its packed form."""
    return zlib.compress(picture.tobytes(), level=6)


def unpack_frame(packed: bytes, width: int, height: int) -> NDArray[np.uint8] | None:
    """Return the picture of a packed frame, shape (height, width, 3); None if it is damaged.

    However much a file promises, no more than this picture is unpacked.
    """
    import numpy as np  # 80 ms

    size = width * height * _CHANNELS
    unpacker = zlib.decompressobj()
    try:
        pixels = unpacker.decompress(packed, size + 1)
    except zlib.error:
        return None
    if len(pixels) != size or not unpacker.eof:
        return None
    return np.frombuffer(pixels, np.uint8).reshape(height, width, _CHANNELS)
