"""The file in which an engine leaves the frames of a run: 8-bit pictures, at most 512 × 512.

Layout: a header of 64 bytes (little-endian: the text ``GPUSTFRM``, then uint32 schema, width,
height, capacity), then ``capacity`` frames one after the other, each height × width × 3 bytes, RGB,
rows from the top. A frame is written once. `FrameReady` says which frame is complete.

The engine makes the file in its temporary folder, which is removed with the engine's process. A
reader opens the file for one copy and closes it again, because Windows removes no open file.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gpu_studio.core.messages.race_messages import LARGEST_FRAME_SIDE

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 1
LARGEST_SIDE = LARGEST_FRAME_SIDE
HEADER_BYTES = 64
CHANNELS = 3
LARGEST_FILE_BYTES = 64 << 20
_MAGIC = b"GPUSTFRM"
_HEADER = struct.Struct("<8sIIII")


def header_of(width: int, height: int) -> bytes:
    """Return the header of a new file."""
    fields = _HEADER.pack(_MAGIC, SCHEMA, width, height, capacity_of(width, height))
    return fields.ljust(HEADER_BYTES, b"\0")


def capacity_of(width: int, height: int) -> int:
    """Return how many frames of a size fit into a file."""
    return (LARGEST_FILE_BYTES - HEADER_BYTES) // (width * height * CHANNELS)


def offset_of(number: int, width: int, height: int) -> int:
    """Return where a frame begins, in bytes."""
    return HEADER_BYTES + number * width * height * CHANNELS


def read_frame(path: Path, number: int) -> NDArray[np.uint8] | None:
    """Return a copy of a frame, shape (height, width, 3); None if the file or the frame is gone.

    Args:
        path: the file that `FramesOpened` names.
        number: the number of a frame that is ready.
    """
    import numpy as np  # 80 ms

    found = read_pixels(path, number)
    if found is None:
        return None
    pixels, height, width = found
    return np.frombuffer(pixels, np.uint8).reshape(height, width, CHANNELS)


def read_pixels(path: Path, number: int) -> tuple[bytes, int, int] | None:
    """Return a frame as bytes, with its height and width; the arguments are those of `read_frame`.

    It needs no NumPy, whose import would cost a race's first moments on a small PC.
    """
    try:
        with path.open("rb") as file:
            magic, schema, width, height, capacity = _HEADER.unpack(file.read(_HEADER.size))
            sides = range(1, LARGEST_SIDE + 1)
            if magic != _MAGIC or schema != SCHEMA or width not in sides or height not in sides:
                return None
            if not 0 <= number < capacity:
                return None
            file.seek(offset_of(number, width, height))
            pixels = file.read(width * height * CHANNELS)
    except (OSError, struct.error):
        return None
    return (pixels, height, width) if len(pixels) == width * height * CHANNELS else None
