"""A frame of a race inside a line of a recording: its rows of RGB bytes, packed with zlib.

It stays packed until it is shown: a thousandth of its pixels is enough for a frame of one color.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_FRAMES_OF_RUN = 100
"""In a recording: over five seconds of all frames, or every few of a longer run."""
MOST_FRAMES = 2000
"""Of all runs of a recording."""
_CHANNELS = 3
# Both sides, in the tab and on the full screen, each as long as it is shown.
_SHOWN_FRAMES = 4


class PackedFrame(NamedTuple):
    """A picture as a recording keeps it, with its claimed size in pixels."""

    packed: bytes
    width: int
    height: int

    @property
    def nbytes(self) -> int:
        """Its size in memory, in bytes."""
        return len(self.packed)

    def unpacked(self) -> NDArray[np.uint8] | None:
        """Return the picture, as `unpack_frame`; what is shown again is not unpacked again."""
        return _shown(self)


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


@lru_cache(maxsize=_SHOWN_FRAMES)
def _shown(frame: PackedFrame) -> NDArray[np.uint8] | None:
    return unpack_frame(*frame)
