"""A small picture in a message: its rows of RGB bytes, packed with zlib; and how many are kept.

It stays packed until it is shown: a thousandth of its pixels is enough for a frame of one color.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

LARGEST_FRAME_SIDE = 512
CHANNELS = 3
MOST_FRAMES_OF_RUN = 100
"""In a recording: over five seconds of all frames, or every few of a longer run."""
MOST_FRAMES = 2000
"""Of all runs of a recording."""
_QUICKLY = 1  # the engine packs frames between two timed regions
# Both sides, in the tab and on the full screen, each as long as it is shown.
_SHOWN_FRAMES = 4

_Moment = TypeVar("_Moment")
Side = Annotated[int, Meta(ge=1, le=LARGEST_FRAME_SIDE)]


class PackedFrame(NamedTuple):
    """A picture with its claimed size in pixels; a stranger's may be damaged."""

    packed: bytes
    width: Side
    height: Side

    @classmethod
    def of(cls, pixels: NDArray[np.uint8]) -> PackedFrame:
        """Return a picture of shape (height, width, 3), ``uint8``."""
        height, width, _ = pixels.shape
        return cls(pack_rows(pixels.tobytes()), width, height)

    @property
    def nbytes(self) -> int:
        """Its size in memory, in bytes."""
        return len(self.packed)

    @property
    def rows(self) -> bytes | None:
        """Its width × height × 3 bytes, rows from the top; None if it is damaged."""
        return _shown(self)

    @property
    def pixels(self) -> NDArray[np.uint8] | None:
        """The picture, shape (height, width, 3); None if it is damaged."""
        import numpy as np  # 80 ms

        rows = self.rows
        if rows is None:
            return None
        return np.frombuffer(rows, np.uint8).reshape(self.height, self.width, CHANNELS)

    @property
    def identity(self) -> str:
        """The SHA-256 of the picture as a PPM file, for `RaceParameters.photo`."""
        import hashlib  # loads OpenSSL

        head = b"P6\n%d %d\n255\n" % (self.width, self.height)
        return hashlib.sha256(head + (self.rows or b"")).hexdigest()


def pack_rows(rows: bytes) -> bytes:
    """Return the rows of a picture in their packed form."""
    return zlib.compress(rows, level=_QUICKLY)


def unpack_rows(packed: bytes, width: int, height: int) -> bytes | None:
    """Return the rows of a packed picture; None if it is damaged.

    However much a file promises, no more than this picture is unpacked.
    """
    size = width * height * CHANNELS
    unpacker = zlib.decompressobj()
    try:
        rows = unpacker.decompress(packed, size + 1)
    except zlib.error:
        return None
    return rows if len(rows) == size and unpacker.eof else None


@lru_cache(maxsize=_SHOWN_FRAMES)
def _shown(frame: PackedFrame) -> bytes | None:
    return unpack_rows(*frame)


def thinned(moments: Sequence[_Moment], most: int) -> tuple[_Moment, ...]:
    """Return at most so many moments, the first and the last one among them; of one, the last."""
    if len(moments) <= most:
        return tuple(moments)
    if most < 2:
        return (moments[-1],) * most
    last = len(moments) - 1
    return tuple(moments[round(number * last / (most - 1))] for number in range(most))
