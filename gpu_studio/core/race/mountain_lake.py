"""The picture that a race learns if you give it none: a mountain lake, drawn for this program.

It is arithmetic on coordinates, so the window and the terminal draw the same pixels at any size,
and no picture file is shipped. x runs from 0 at the left to 1 at the right, y from 0 at the top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Plane = NDArray[np.float64]
    Color = tuple[int, int, int]

_FINER = 2  # samples per pixel and axis, for smooth edges
_SHORE = 0.64
_SUN = (0.70, 0.30)
# Peaks of each range as (x, y), from left to right; straight lines join them.
_FAR = ((0.0, 0.42), (0.13, 0.26), (0.27, 0.40), (0.42, 0.24), (0.56, 0.41), (0.73, 0.27),
        (0.86, 0.40), (1.0, 0.28))  # fmt: skip
_NEAR = ((0.0, 0.47), (0.17, 0.44), (0.36, 0.31), (0.52, 0.50), (0.69, 0.37), (0.83, 0.47),
         (0.92, 0.33), (1.0, 0.43))  # fmt: skip
_HILLS = ((0.0, 0.56), (0.14, 0.59), (0.30, 0.53), (0.47, 0.60), (0.62, 0.52), (0.80, 0.59),
          (1.0, 0.55))  # fmt: skip
_BANK = ((0.0, 0.78), (0.16, 0.80), (0.32, 0.87), (0.45, 1.0), (1.0, 1.2))
_CLOUDS = ((0.12, 0.14, 0.13, 0.030), (0.20, 0.115, 0.09, 0.030), (0.44, 0.09, 0.12, 0.026),
           (0.90, 0.15, 0.12, 0.028))  # fmt: skip
# A tree: the middle of its foot, and its height.
_TREES = ((0.045, 0.82, 0.40), (0.115, 0.83, 0.29), (0.285, 0.87, 0.22), (0.335, 0.89, 0.26),
          (0.970, 0.74, 0.20))  # fmt: skip


class _Box(NamedTuple):
    """A rectangle from its left top to its right bottom corner, and its color."""

    left: float
    top: float
    right: float
    bottom: float
    color: Color


_HOUSE = (
    _Box(0.150, 0.800, 0.240, 0.890, (112, 58, 44)),
    _Box(0.162, 0.828, 0.184, 0.852, (250, 214, 112)),
    _Box(0.202, 0.828, 0.228, 0.890, (74, 38, 32)),
    _Box(0.214, 0.715, 0.229, 0.770, (74, 38, 32)),
)
_ROOF = ((0.138, 0.805), (0.195, 0.735), (0.252, 0.805), (78, 42, 36))
_SAIL = ((0.600, 0.745), (0.600, 0.655), (0.640, 0.745), (244, 244, 240))
_JIB = ((0.565, 0.745), (0.596, 0.675), (0.596, 0.745), (214, 220, 222))
_HULL = _Box(0.560, 0.750, 0.645, 0.768, (132, 44, 38))


def mountain_lake(side: int) -> NDArray[np.uint8]:
    """Return the picture as ``uint8`` of shape (side, side, 3), red, green, blue.

    Raises:
        ValueError: ``side`` is under 1.
    """
    if side < 1:
        message = f"a picture of {side} pixels"
        raise ValueError(message)
    count = side * _FINER
    middles = (np.arange(count) + 0.5) / count
    x, y = np.meshgrid(middles, middles)
    canvas = _scenery(x, y)
    _paint_foreground(canvas, x, y)
    pixels = canvas.reshape(side, _FINER, side, _FINER, 3).mean(axis=(1, 3))
    picture: NDArray[np.uint8] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return picture


def _scenery(x: Plane, y: Plane) -> Plane:
    """Return the sky and the mountains, and their reflection below the shore."""
    is_water = y > _SHORE
    seen = np.where(is_water, 2 * _SHORE - y, y)  # what a mirror at the shore shows
    ripple = np.where(is_water, 0.004 * np.sin(y * 260) * (y - _SHORE) / (1 - _SHORE), 0.0)
    canvas = _sky(x + ripple, seen)
    for peaks, color, snow in (
        (_FAR, (158, 176, 208), 0.0),
        (_NEAR, (98, 128, 160), 0.055),
        (_HILLS, (48, 88, 92), 0.0),
    ):
        _paint_range(canvas, x + ripple, seen, peaks, color, snow)
    water = np.array((96, 140, 168))
    depth = ((y - _SHORE) / (1 - _SHORE))[..., None]
    mirrored = canvas * (0.82 - 0.42 * depth) + water * (0.18 + 0.42 * depth)
    canvas[:] = np.where(is_water[..., None], mirrored, canvas)
    glitter = is_water & (np.abs(x - _SUN[0]) < 0.02 + 0.05 * depth[..., 0])
    _lay(canvas, glitter & (np.sin(y * 420) > 0.55), (244, 226, 178), 0.55)
    return canvas


def _sky(x: Plane, y: Plane) -> Plane:
    """Return a sky that is lighter at the horizon and around the sun, with clouds."""
    high, low = np.array((104, 156, 212)), np.array((232, 222, 204))
    share = np.clip(y / _SHORE, 0, 1)[..., None]
    canvas: Plane = high + (low - high) * share
    far = np.hypot(x - _SUN[0], y - _SUN[1])[..., None]
    canvas = canvas + np.array((120, 84, 10)) * 0.45 * np.exp(-((far / 0.22) ** 2))
    _lay(canvas, far[..., 0] < 0.055, (255, 240, 188))
    for left, top, width, height in _CLOUDS:
        is_cloud = ((x - left) / width) ** 2 + ((y - top) / height) ** 2 < 1
        _lay(canvas, is_cloud, (250, 250, 250), 0.72)
    return np.minimum(canvas, 255.0)


def _paint_range(
    canvas: Plane,
    x: Plane,
    y: Plane,
    peaks: Sequence[tuple[float, float]],
    color: Color,
    snow: float,
) -> None:
    places, heights = zip(*peaks, strict=True)
    ridge = np.interp(x, places, heights)
    _lay(canvas, y > ridge, color)
    if snow:
        # Snow lies on the summits: its lower edge is jagged.
        edge = min(heights) + snow + 0.014 * np.abs(np.mod(x * 46, 2) - 1)
        _lay(canvas, (y > ridge) & (y < edge), (240, 244, 248))


def _paint_foreground(canvas: Plane, x: Plane, y: Plane) -> None:
    """Paint the near bank, the house, the boat and the trees."""
    _paint_triangle(canvas, x, y, *_SAIL)
    _paint_triangle(canvas, x, y, *_JIB)
    _paint_box(canvas, x, y, _HULL)
    places, heights = zip(*_BANK, strict=True)
    _lay(canvas, y > np.interp(x, places, heights), (36, 68, 66))
    _lay(canvas, ((x - 1.0) / 0.13) ** 2 + ((y - 0.745) / 0.022) ** 2 < 1, (36, 68, 66))
    for box in _HOUSE:
        _paint_box(canvas, x, y, box)
    _paint_triangle(canvas, x, y, *_ROOF)
    for foot, bottom, height in _TREES:
        _paint_tree(canvas, x, y, foot, bottom, height)


def _paint_tree(
    canvas: Plane, x: Plane, y: Plane, foot: float, bottom: float, height: float
) -> None:
    """Paint a trunk, and three triangles above one another."""
    crown = bottom - 0.08 * height
    _paint_box(canvas, x, y, _Box(foot - 0.006, crown, foot + 0.006, bottom, (40, 34, 32)))
    for top, low, width in ((1.0, 0.55, 0.09), (0.78, 0.30, 0.13), (0.54, 0.0, 0.17)):
        reach = width * height
        base = crown - low * 0.92 * height
        left, peak, right = (
            (foot - reach, base),
            (foot, crown - top * 0.92 * height),
            (foot + reach, base),
        )
        _paint_triangle(canvas, x, y, left, peak, right, (24, 58, 62))


def _paint_box(canvas: Plane, x: Plane, y: Plane, box: _Box) -> None:
    inside = (x > box.left) & (x < box.right) & (y > box.top) & (y < box.bottom)
    _lay(canvas, inside, box.color)


def _paint_triangle(
    canvas: Plane,
    x: Plane,
    y: Plane,
    first: tuple[float, float],
    second: tuple[float, float],
    third: tuple[float, float],
    color: Color,
) -> None:
    """Paint a triangle whose corners follow one another clockwise."""
    inside = np.ones(x.shape, dtype=bool)
    for (ax, ay), (bx, by) in ((first, second), (second, third), (third, first)):
        inside &= (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0
    _lay(canvas, inside, color)


def _lay(canvas: Plane, where: NDArray[np.bool_], color: Color, opacity: float = 1.0) -> None:
    canvas[where] = canvas[where] * (1 - opacity) + np.array(color) * opacity
