"""The segment map: the largest hole, a row for each segment, and the chosen block in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QScrollArea

from gpu_studio.core.memory.segments import ALLOCATED, AWAITING_FREE, INACTIVE
from gpu_studio.model.memory.segment_model import SegmentModel
from gpu_studio.ui.memory.segment_map import SegmentMapView, paint_state
from gpu_studio.ui.page import Box, Flow, Own, Page
from gpu_studio.ui.page_parts import Press, Words
from gpu_studio.ui.parts import Text
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_SWATCH = 12
_LEAST_HEIGHT = 200  # of the map, in pixels
_LEGEND = {ALLOCATED: "Tensor", INACTIVE: "Hole", AWAITING_FREE: "Waiting to be freed"}


class SegmentPage(Page):
    """Shows the segments of the chosen card, or of an opened snapshot."""

    model: SegmentModel

    def __init__(self, memory: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        model = SegmentModel(memory)
        super().__init__("memory.segment_map", model, theme, parent)
        model.setParent(self)

    def parts(self) -> Sequence[Part]:
        m = self.model
        return (
            Box(
                Flow(
                    Words(lambda: m.largest, "headline", name="largest", wraps=False, stretch=1,
                          presented=True),
                    Words(lambda: m.moment, "muted", name="moment", wraps=False),
                    Press("Show now", m.show_now, name="now", shown=lambda: bool(m.moment),
                          tip="Show the segments as they are now"),
                    Press(
                        lambda: "Reading…" if m.is_reading else "Open snapshot…", self._ask_file,
                        name="open", enabled=lambda: not m.is_reading, icon="file",
                        tip="Open a file of torch.cuda.memory._dump_snapshot; nothing in it is "
                        "executed",
                    ),
                ),
                Words(lambda: m.meaning, name="meaning", shown=lambda: not m.notice.sentence),
                # One takes the place of the other: the map stays where it is.
                Words(lambda: m.notice, name="notice"),
            ),
            Box(
                Flow(
                    Words(lambda: m.sums, "title", name="sums", wraps=False, stretch=1),
                    *(
                        Own(_LegendEntry(self.theme, state), shown=lambda: bool(m.blocks))
                        for state in _LEGEND
                    ),
                ),
                Own(lambda: _MapArea(self.theme, m), lambda area: area.show_map(), name="map",
                    stretch=1, presented=True),
                Words(lambda: m.block or " ", name="block"),
                stretch=1,
            ),
        )  # fmt: skip

    def _ask_file(self) -> None:
        path = ask_open_path(self, "Open a snapshot", "Snapshots (*.pickle *.pkl);;All files (*)")
        if path:
            self.model.open_snapshot(Path(path))


class _MapArea(QScrollArea):
    """The map, which scrolls if it has many segments."""

    def __init__(self, theme: Theme, model: SegmentModel) -> None:
        super().__init__()
        self._model = model
        self._view = SegmentMapView(theme, name="memory.segments")
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setObjectName("memory.segments_area")
        self.setAccessibleName("Segment map")
        self.setWidget(self._view)
        for layer in (self.viewport(), self._view):  # the card shows through
            layer.setAutoFillBackground(False)
        self.setMinimumHeight(_LEAST_HEIGHT)
        self._view.block_described.connect(model.describe_block)
        self._view.row_chosen.connect(self._on_row_chosen)

    def show_map(self) -> None:
        """Show the present segments."""
        if self._view.blocks is not self._model.blocks or not self._model.blocks:
            self._view.show_map(self._model.blocks, self._model.nothing)

    def _on_row_chosen(self, y: int) -> None:
        half = self._view.pitch // 2
        self.ensureVisible(0, y + half, 0, half)


class _LegendEntry(Text):
    """A meaning after a square that is painted like a block."""

    def __init__(self, theme: Theme, state: int) -> None:
        super().__init__(_LEGEND[state], "muted")
        self._theme, self._state = theme, state
        self.setContentsMargins(_SWATCH + _SWATCH // 2, 0, 0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the square before the text."""
        super().paintEvent(event)
        square = QRectF(0, (self.height() - _SWATCH) / 2, _SWATCH, _SWATCH)
        paint_state(QPainter(self), self._theme, self._state, [square])
