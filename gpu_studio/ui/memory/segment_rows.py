"""The pictures of the segment map's rows, made from arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QColor, QImage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_studio.core.memory.segment_map import SegmentMap
    from gpu_studio.ui.theme import Theme

_HATCH = 7
_LEAST_BORDERED = 4  # pixels: narrower blocks are drawn without a border


class RowPicture:
    """Makes the pictures of rows: allocated is solid, free is hatched, waiting is in between.

    Args:
        theme: gives the colours.
        scale: device pixels a pixel of the screen.
    """

    def __init__(self, theme: Theme, scale: float) -> None:
        import numpy as np

        self._scale = scale
        self._hatching: dict[int, NDArray[np.bool_]] = {}

        def rgb(role: str) -> NDArray[np.float64]:
            colour = QColor(theme.colour(role))
            return np.array([colour.blue(), colour.green(), colour.red()], np.float64)

        ground, ink = rgb("card"), rgb("allocated")
        self._solid = ink
        self._border = 0.55 * ink + 0.45 * ground
        self._waiting = rgb("amber")
        self._wash = 0.14 * ink + 0.86 * ground
        self._hatch = 0.75 * ink + 0.25 * ground

    def of(self, blocks: SegmentMap, segment: int, width: float, height: float) -> QImage:
        """Return the picture of one segment.

        Args:
            blocks: the map.
            segment: which one.
            width: in pixels of the screen.
            height: likewise.
        """
        import numpy as np

        columns = max(round(width * self._scale), 1)
        rows = max(round(height * self._scale), 3)
        solid = blocks.coverage(segment, columns)[:, None]
        waiting = blocks.coverage(segment, columns, state=1)[:, None]
        free = 1.0 - solid - waiting
        held = solid * self._solid + waiting * self._waiting
        base = _packed(held + free * self._wash)
        struck = _packed(held + free * self._hatch)
        border = _packed(self._border[None])[0]
        starts = self._borders(blocks, segment, columns)
        base[starts] = struck[starts] = border
        picture = np.where(self._strikes(rows, columns), struck, base)
        picture[0] = picture[-1] = struck  # the hatching's colour all along: a frame around holes
        picture[:, 0] = picture[:, -1] = border
        image = QImage(picture.data, columns, rows, 4 * columns, QImage.Format.Format_RGB32)
        return image.copy()  # the array does not outlive this

    def _strikes(self, rows: int, columns: int) -> NDArray[np.bool_]:
        """Return where the hatching is, the same for all rows of one size."""
        import numpy as np

        known = self._hatching.get(rows)
        if known is None or known.shape[1] < columns:
            ys, xs = np.ogrid[:rows, :columns]
            known = (xs + ys) % round(_HATCH * self._scale) < self._scale
            self._hatching[rows] = known
        return known[:, :columns]

    @staticmethod
    def _borders(blocks: SegmentMap, segment: int, columns: int) -> NDArray[np.int64]:
        """Return the columns at which a block begins that is wide enough to be told apart."""
        import numpy as np

        place = blocks.blocks_of(segment)
        scale = columns / int(blocks.sizes[segment])
        starts = (blocks.block_offsets[place] * scale).astype(np.int64)
        wide = blocks.block_sizes[place] * scale >= _LEAST_BORDERED
        return np.minimum(starts[wide], columns - 1)


def _packed(colours: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return blue, green and red, shape (n, 3), as the numbers that `QImage` takes, shape (n,)."""
    import numpy as np

    whole = colours.astype(np.uint32)
    opaque = np.uint32(0xFF000000)
    packed: NDArray[np.uint32] = (
        whole[:, 2] << np.uint32(16) | whole[:, 1] << np.uint32(8) | whole[:, 0] | opaque
    )
    return packed
