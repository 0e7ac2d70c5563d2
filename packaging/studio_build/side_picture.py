"""The picture at the side of the setup's last page: the program's icon, as a Windows bitmap.

NSIS wants 164 × 314 pixels without transparency.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH, _HEIGHT = 164, 314
_TOP, _BOTTOM = (32, 40, 52), (20, 26, 34)  # the icon's own dark, a little lighter above
_SCALE = 2  # of a side of 256 pixels, 128 are shown


def write_side_picture(icon: Path, target: Path) -> None:
    """Draw the icon in the middle of a dark ground.

    Args:
        icon: a square PNG of 256 pixels a side, as packaging/draw_icon.py writes it.
        target: the bitmap.

    Raises:
        BuildError: the icon is in another format.
    """
    side, pixels = read_png(icon.read_bytes())
    shown = side // _SCALE
    left, top = (_WIDTH - shown) // 2, (_HEIGHT - shown) // 2
    rows = []
    for y in range(_HEIGHT):
        ground = tuple(
            above + (below - above) * y // _HEIGHT
            for above, below in zip(_TOP, _BOTTOM, strict=True)
        )
        row = bytearray()
        for x in range(_WIDTH):
            color = ground
            if 0 <= x - left < shown and 0 <= y - top < shown:
                color = _over(ground, pixels, side, x - left, y - top)
            row += bytes(reversed(color))  # a bitmap has blue first
        rows.append(bytes(row) + bytes(-len(row) % 4))
    content = b"".join(reversed(rows))  # and its lowest row first
    header = struct.pack("<IiiHHIIiiII", 40, _WIDTH, _HEIGHT, 1, 24, 0, len(content), 0, 0, 0, 0)
    target.write_bytes(b"BM" + struct.pack("<IHHI", 54 + len(content), 0, 0, 54) + header + content)


def _over(
    ground: tuple[int, ...], pixels: list[bytes], side: int, x: int, y: int
) -> tuple[int, ...]:
    """Return the color of a shown pixel: the mean of the icon's, laid over the ground."""
    assert _SCALE * max(x, y) < side
    sums, alphas = [0, 0, 0], 0
    for dy in range(_SCALE):
        line = pixels[_SCALE * y + dy]
        for dx in range(_SCALE):
            *color, alpha = line[4 * (_SCALE * x + dx) : 4 * (_SCALE * x + dx) + 4]
            alphas += alpha
            sums = [one + part * alpha for one, part in zip(sums, color, strict=True)]
    whole = 255 * _SCALE * _SCALE
    return tuple(
        (one + under * (whole - alphas)) // whole for one, under in zip(sums, ground, strict=True)
    )


def read_png(content: bytes) -> tuple[int, list[bytes]]:
    """Return the side of a square PNG, and its rows, four bytes a pixel (PNG specification).

    Raises:
        BuildError: it is not square, or not of eight bits with transparency.
    """
    width, height, depth, kind, _, _, laced = struct.unpack(">IIBBBBB", content[16:29])
    if width != height or (depth, kind, laced) != (8, 6, 0):
        raise BuildError("The icon has to be a square PNG of eight bits with transparency.")
    packed, place = b"", 8
    while place < len(content):
        (length,) = struct.unpack_from(">I", content, place)
        if content[place + 4 : place + 8] == b"IDAT":
            packed += content[place + 8 : place + 8 + length]
        place += 12 + length
    plain, rows, above = zlib.decompress(packed), [], bytes(4 * width)
    for y in range(height):
        start = y * (4 * width + 1)
        above = _unfiltered(plain[start], plain[start + 1 : start + 1 + 4 * width], above)
        rows.append(above)
    return width, rows


def _unfiltered(kind: int, line: bytes, above: bytes) -> bytes:
    """Undo a row's filter: 0 to 4 are none, left, above, their mean, and Paeth's choice."""
    row = bytearray(line)
    for index, value in enumerate(line):
        left = row[index - 4] if index >= 4 else 0
        corner = above[index - 4] if index >= 4 else 0
        up = above[index]
        guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        row[index] = (value + guess) & 0xFF
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))
