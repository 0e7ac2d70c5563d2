"""The detail of a picture that a lens shows: where its neighboring pixels differ most."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SHARE = 0.12
# The middles that are looked at, along each side.
_PLACES = 24


class Detail(NamedTuple):
    """A square of a picture.

    Attributes:
        x, y: its middle, as shares of the width and the height.
        share: its side, as a share of the width, or of the height if that is less.
    """

    x: float
    y: float
    share: float = _SHARE


LAKE = Detail(0.201, 0.750, 0.125)


def detail_of(pixels: NDArray[np.uint8]) -> Detail:
    """Return the detail of a picture, shape (height, width, 3), with the sharpest edges."""
    import numpy as np

    gray = pixels.astype(np.float64).mean(axis=2)
    edges = np.zeros_like(gray)
    edges[:, 1:] += np.abs(np.diff(gray, axis=1))
    edges[1:, :] += np.abs(np.diff(gray, axis=0))
    sums = np.zeros((gray.shape[0] + 1, gray.shape[1] + 1))
    sums[1:, 1:] = edges.cumsum(axis=0).cumsum(axis=1)
    height, width = gray.shape
    side = max(1, round(_SHARE * min(width, height)))
    best, found = -1.0, Detail(0.5, 0.5)
    for top in np.unique(np.linspace(0, height - side, _PLACES).astype(int)):
        for left in np.unique(np.linspace(0, width - side, _PLACES).astype(int)):
            bottom, right = top + side, left + side
            inside = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
            if inside > best:
                best = inside
                found = Detail((left + side / 2) / width, (top + side / 2) / height)
    return found
