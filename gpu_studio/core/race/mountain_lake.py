"""The picture that a race learns if you give it none: a lake at dusk, drawn for this program.

It is arithmetic on coordinates, so the window and the terminal draw the same pixels at any size,
and no file of it is shipped. The height is 1: x runs from 0 at the left to 16/9 at the right, y
from 0 at the top to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpu_studio.core.race.pictures import wide_height

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Plane = NDArray[np.float64]
    Color = tuple[int, int, int]

# Samples per pixel and axis, for smooth edges; more where an edge is a large share of the picture.
_FINER, _FINEST, _SMALL = 2, 6, 64
_SHORE = 0.60
_SUN = (1.20, 0.45)
# The sky from the top to the horizon.
_SKY = ((40, 38, 96), (104, 62, 128), (214, 104, 128), (255, 190, 132))
_SKY_ENDS = (0.0, 0.30, 0.62, 1.0)
# Peaks of each range as (x, y), from left to right; straight lines join them.
_FAR = ((0.0, 0.46), (0.16, 0.34), (0.34, 0.45), (0.62, 0.27), (0.86, 0.44), (1.06, 0.37),
        (1.32, 0.47), (1.56, 0.33), (1.78, 0.42))  # fmt: skip
_NEAR = ((0.0, 0.42), (0.20, 0.36), (0.46, 0.54), (0.72, 0.42), (0.94, 0.54), (1.18, 0.52),
         (1.44, 0.42), (1.62, 0.50), (1.78, 0.44))  # fmt: skip
_HILLS = ((0.0, 0.55), (0.25, 0.57), (0.55, 0.54), (0.85, 0.575), (1.15, 0.56), (1.45, 0.575),
          (1.78, 0.545))  # fmt: skip
_BANK = ((0.0, 0.76), (0.30, 0.80), (0.52, 0.84), (0.66, 0.92), (0.76, 1.0), (1.78, 1.3))
_CLOUDS = ((0.20, 0.13, 0.20, 0.022), (0.34, 0.105, 0.13, 0.020), (0.86, 0.19, 0.22, 0.018),
           (1.00, 0.17, 0.12, 0.016),
           (1.50, 0.11, 0.20, 0.022), (1.62, 0.135, 0.12, 0.016))  # fmt: skip
# A tree: the middle of its foot, and its height.
_TREES = ((0.05, 0.80, 0.42), (0.14, 0.82, 0.30), (0.21, 0.85, 0.18), (0.50, 0.86, 0.24),
          (0.58, 0.90, 0.30), (1.70, 0.665, 0.16), (1.75, 0.67, 0.22))  # fmt: skip
_STARS = ((0.10, 0.05), (0.28, 0.03), (0.47, 0.06), (0.63, 0.04), (0.74, 0.10), (0.93, 0.05),
          (1.08, 0.09), (1.23, 0.03), (1.37, 0.08), (1.55, 0.04), (1.71, 0.07))  # fmt: skip


class _Box(NamedTuple):
    """A rectangle from its left top to its right bottom corner, and its color."""

    left: float
    top: float
    right: float
    bottom: float
    color: Color


_DARK_WOOD, _WOOD, _LIGHT = (66, 34, 38), (138, 72, 52), (255, 216, 122)
_HOUSE = (
    _Box(0.392, 0.640, 0.416, 0.715, _DARK_WOOD),
    _Box(0.285, 0.735, 0.430, 0.845, _WOOD),
    *(_Box(0.285, y, 0.430, y + 0.004, (112, 56, 44)) for y in (0.755, 0.777, 0.799, 0.821)),
    _Box(0.296, 0.758, 0.336, 0.800, _DARK_WOOD),
    _Box(0.300, 0.762, 0.332, 0.796, _LIGHT),
    _Box(0.3145, 0.762, 0.3175, 0.796, _DARK_WOOD),
    _Box(0.300, 0.7775, 0.332, 0.7805, _DARK_WOOD),
    _Box(0.346, 0.768, 0.376, 0.845, _DARK_WOOD),
    _Box(0.351, 0.774, 0.371, 0.845, (98, 50, 44)),
    _Box(0.384, 0.758, 0.424, 0.800, _DARK_WOOD),
    _Box(0.388, 0.762, 0.420, 0.796, _LIGHT),
    _Box(0.4025, 0.762, 0.4055, 0.796, _DARK_WOOD),
    _Box(0.388, 0.7775, 0.420, 0.7805, _DARK_WOOD),
)
_ROOF = ((0.262, 0.742), (0.3575, 0.648), (0.453, 0.742), (84, 40, 50))
_SAIL = ((1.010, 0.700), (1.010, 0.590), (1.062, 0.700), (255, 238, 220))
_JIB = ((0.958, 0.700), (1.003, 0.610), (1.003, 0.700), (240, 196, 186))
_HULL = _Box(0.952, 0.706, 1.070, 0.724, (150, 50, 48))
_SHADE: Color = (30, 30, 58)


def mountain_lake(width: int) -> NDArray[np.uint8]:
    """Return the picture as ``uint8`` of shape (9/16 width, width, 3), red, green, blue.

    Raises:
        ValueError: ``width`` is under 1.
    """
    if width < 1:
        message = f"a picture of {width} pixels"
        raise ValueError(message)
    height = wide_height(width)
    finer = _FINEST if width <= _SMALL else _FINER
    x, y = np.meshgrid(_middles(width * finer) * 16 / 9, _middles(height * finer))
    canvas = _scenery(x, y)
    _paint_foreground(canvas, x, y)
    pixels = canvas.reshape(height, finer, width, finer, 3).mean(axis=(1, 3))
    picture: NDArray[np.uint8] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return picture


def _middles(count: int) -> Plane:
    return (np.arange(count) + 0.5) / count


def _scenery(x: Plane, y: Plane) -> Plane:
    """Return the sky and the mountains, and their reflection below the shore."""
    is_water = y > _SHORE
    seen = np.where(is_water, 2 * _SHORE - y, y)  # what a mirror at the shore shows
    ripple = np.where(is_water, 0.006 * np.sin(y * 260) * (y - _SHORE) / (1 - _SHORE), 0.0)
    canvas = _sky(x + ripple, seen)
    for peaks, color, snow in (
        (_FAR, (118, 84, 146), 0.065),
        (_NEAR, (78, 58, 116), 0.0),
        (_HILLS, (44, 38, 78), 0.0),
    ):
        _paint_range(canvas, x + ripple, seen, peaks, color, snow)
    depth = ((y - _SHORE) / (1 - _SHORE))[..., None]
    water = np.array((70, 56, 116))
    mirrored = canvas * (0.86 - 0.40 * depth) + water * (0.14 + 0.34 * depth)
    canvas[:] = np.where(is_water[..., None], mirrored, canvas)
    far = depth[..., 0]
    glitter = is_water & (np.abs(x - _SUN[0]) < 0.02 + 0.10 * far)
    _lay(canvas, glitter & (np.sin(y * 420) > 0.45), (255, 214, 150), 0.6)
    streak = is_water & (np.sin(y * 150 + 3 * np.sin(x * 5)) > 0.985)
    _lay(canvas, streak, (236, 178, 178), 0.35)
    return canvas


def _sky(x: Plane, y: Plane) -> Plane:
    """Return a sky that is brighter at the horizon and around the sun, with clouds and stars."""
    share = np.clip(y / _SHORE, 0, 1)
    channels = zip(*_SKY, strict=True)
    canvas: Plane = np.stack([np.interp(share, _SKY_ENDS, one) for one in channels], axis=-1)
    far = np.hypot(x - _SUN[0], y - _SUN[1])[..., None]
    canvas = canvas + np.array((130, 110, 50)) * 0.75 * np.exp(-((far / 0.24) ** 2))
    _lay(canvas, far[..., 0] < 0.075, (255, 242, 196))
    for left, top in _STARS:
        _lay(canvas, np.hypot(x - left, y - top) < 0.0035, (255, 250, 236), 0.9)
    for left, top, width, height in _CLOUDS:
        is_cloud = ((x - left) / width) ** 2 + ((y - top) / height) ** 2 < 1
        _lay(canvas, is_cloud, (246, 176, 168), 0.62)
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
    # The sun stands at the right: the slopes that fall to the left lie in shade.
    slope = np.interp(x + 0.004, places, heights) - ridge
    _lay(canvas, (y > ridge) & (slope < 0) & (y < ridge + 0.16), (34, 26, 70), 0.22)
    if snow:
        # Snow lies on the summits: its lower edge is jagged.
        edge = min(heights) + snow + 0.014 * np.abs(np.mod(x * 46, 2) - 1)
        _lay(canvas, (y > ridge) & (y < edge + 0.06) & (y < ridge + 0.055), (255, 222, 216), 0.9)


def _paint_foreground(canvas: Plane, x: Plane, y: Plane) -> None:
    """Paint the near bank, the house, the boat and the trees."""
    _paint_triangle(canvas, x, y, *_SAIL)
    _paint_triangle(canvas, x, y, *_JIB)
    _paint_box(canvas, x, y, _HULL)
    places, heights = zip(*_BANK, strict=True)
    _lay(canvas, y > np.interp(x, places, heights), _SHADE)
    _lay(canvas, ((x - 1.80) / 0.26) ** 2 + ((y - 0.665) / 0.03) ** 2 < 1, _SHADE)
    _lay(canvas, ((x - 0.3575) / 0.16) ** 2 + ((y - 0.86) / 0.035) ** 2 < 1, (150, 96, 62), 0.55)
    for box in _HOUSE[:2]:
        _paint_box(canvas, x, y, box)
    _paint_triangle(canvas, x, y, *_ROOF)
    for box in _HOUSE[2:]:
        _paint_box(canvas, x, y, box)
    for foot, bottom, height in _TREES:
        _paint_tree(canvas, x, y, foot, bottom, height)


def _paint_tree(
    canvas: Plane, x: Plane, y: Plane, foot: float, bottom: float, height: float
) -> None:
    """Paint a trunk, and three triangles above one another."""
    crown = bottom - 0.08 * height
    _paint_box(canvas, x, y, _Box(foot - 0.006, crown, foot + 0.006, bottom, (24, 22, 40)))
    for top, low, width in ((1.0, 0.55, 0.09), (0.78, 0.30, 0.13), (0.54, 0.0, 0.17)):
        reach = width * height
        base = crown - low * 0.92 * height
        left, peak, right = (
            (foot - reach, base),
            (foot, crown - top * 0.92 * height),
            (foot + reach, base),
        )
        _paint_triangle(canvas, x, y, left, peak, right, (22, 30, 62))


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
