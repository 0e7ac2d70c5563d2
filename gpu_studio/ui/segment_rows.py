"""The pictures of the segment map's rows, made from arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QColor, QImage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_studio.core.segment_map import SegmentMap
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
        base = solid * self._solid + waiting * self._waiting + free * self._wash
        struck = solid * self._solid + waiting * self._waiting + free * self._hatch
        starts = self._borders(blocks, segment, columns)
        base[starts] = struck[starts] = self._border
        picture = np.empty((rows, columns, 4), np.uint8)
        ys, xs = np.ogrid[:rows, :columns]
        strikes = (xs + ys) % round(_HATCH * self._scale) < self._scale
        picture[..., :3] = np.where(strikes[..., None], struck, base)
        edges = np.broadcast_to(free * self._hatch + (1.0 - free) * base, base.shape)
        picture[0, :, :3] = picture[-1, :, :3] = edges
        picture[:, (0, -1), :3] = self._border
        picture[..., 3] = 255
        image = QImage(picture.data, columns, rows, 4 * columns, QImage.Format.Format_RGB32)
        return image.copy()  # the array does not outlive this

    @staticmethod
    def _borders(blocks: SegmentMap, segment: int, columns: int) -> NDArray[np.int64]:
        """Return the columns at which a block begins that is wide enough to be told apart."""
        import numpy as np

        place = blocks.blocks_of(segment)
        scale = columns / int(blocks.sizes[segment])
        starts = (blocks.block_offsets[place] * scale).astype(np.int64)
        wide = blocks.block_sizes[place] * scale >= _LEAST_BORDERED
        return np.minimum(starts[wide], columns - 1)
