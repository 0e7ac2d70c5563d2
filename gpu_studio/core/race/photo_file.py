"""The picture that a network is to learn, on its way to the engine: a PPM file of 8-bit RGB.

PPM (type P6, netpbm.sourceforge.net/doc/ppm.html) is a short text with width and height, then the
pixels. The window makes it from any picture, so the engine needs no decoder.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.race.detail import LAKE, Detail
from gpu_studio.core.race.frame_file import LARGEST_SIDE
from gpu_studio.core.user_file import UnusableFileError, read_own_file

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

_HEADER = re.compile(rb"P6\n([0-9]{1,4}) ([0-9]{1,4})\n255\n")
_LARGEST_BYTES = LARGEST_SIDE * LARGEST_SIDE * 3 + 64


class Photo(NamedTuple):
    """A picture to learn.

    Attributes:
        name: the file's name.
        pixels: shape (height, width, 3), ``uint8``, at most 512 on each side.
        detail: what a lens shows of it.
    """

    name: str
    pixels: NDArray[np.uint8]
    detail: Detail = LAKE


def photo_id(photo: NDArray[np.uint8]) -> str:
    """Return the identity of a picture, shape (height, width, 3), for `RaceParameters.photo`."""
    return hashlib.sha256(encode_photo(photo)).hexdigest()


def encode_photo(photo: NDArray[np.uint8]) -> bytes:
    """Return the file contents for a picture, shape (height, width, 3)."""
    height, width, _ = photo.shape
    return b"P6\n%d %d\n255\n" % (width, height) + photo.tobytes()


def read_photo(path: Path) -> NDArray[np.uint8]:
    """Return the picture in a file, shape (height, width, 3).

    Raises:
        StudioError: the file cannot be read, or is not such a picture.
    """
    import numpy as np  # 80 ms

    try:
        content = read_own_file(path, _LARGEST_BYTES)
    except UnusableFileError as error:
        raise _refused(str(error)) from error
    header = _HEADER.match(content)
    if header is None:
        raise _refused("it is not an 8-bit PPM picture (P6)")
    width, height = int(header[1]), int(header[2])
    sides = range(1, LARGEST_SIDE + 1)
    pixels = content[header.end() :]
    if width not in sides or height not in sides or len(pixels) != width * height * 3:
        raise _refused(f"its size is not between 1 × 1 and {LARGEST_SIDE} × {LARGEST_SIDE}")
    return np.frombuffer(pixels, np.uint8).reshape(height, width, 3)


def _refused(reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"The picture cannot be learned: {reason}.")
