"""A line through several plots at the same time, to read all of them at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal

if TYPE_CHECKING:
    from PySide6.QtGui import QMouseEvent

    from gpu_studio.ui.plots.live_plot import LivePlot
    from gpu_studio.ui.theme import Theme


class Crosshair(QObject):
    """Follows the mouse in any of its plots, or moves by code; its line is in all of them.

    Signals:
        moved(float | None): its current x; None if it is hidden.

    Attributes:
        x: its x; None if it is hidden.
    """

    moved = Signal(object)

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._plots: list[LivePlot] = []
        self._lines: dict[QObject, tuple[LivePlot, Any]] = {}
        self.x: float | None = None
        theme.changed.connect(self._recolour)

    def add(self, plot: LivePlot) -> None:
        self._plots.append(plot)

    def move_to(self, x: float | None) -> None:
        """Move to x in all plots; None hides it."""
        self.attach()
        if x == self.x:
            return
        self.x = x
        for _, line in self._lines.values():
            line.setVisible(x is not None)
            if x is not None:
                line.setValue(x)
        self.moved.emit(x)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the mouse."""
        if event.type() is QEvent.Type.MouseMove and watched in self._lines:
            self._show_at(self._lines[watched][0], event)  # type: ignore[arg-type]  # by its type
        elif event.type() is QEvent.Type.Leave:
            self.move_to(None)
        return False

    def attach(self) -> None:
        """Connect the plots that are built by now: a plot is built when first visible."""
        import pyqtgraph as pg  # 130 ms

        known = {plot for plot, _ in self._lines.values()}
        for live in self._plots:
            if live.plot is None or live in known:
                continue
            line = pg.InfiniteLine(self.x or 0.0, pen=self._pen())
            line.setVisible(self.x is not None)
            live.plot.addItem(line, ignoreBounds=True)
            viewport = live.plot.viewport()
            viewport.installEventFilter(self)
            viewport.setMouseTracking(True)
            self._lines[viewport] = (live, line)

    def _show_at(self, live: LivePlot, event: QMouseEvent) -> None:
        assert live.plot is not None
        view = live.plot.plotItem.vb
        scene = live.plot.mapToScene(event.position().toPoint())
        if view.sceneBoundingRect().contains(scene):
            self.move_to(float(view.mapSceneToView(scene).x()))
        else:
            self.move_to(None)

    def _pen(self) -> Any:
        import pyqtgraph as pg  # 130 ms

        return pg.mkPen(self._theme.colour("text"), width=1, style=Qt.PenStyle.SolidLine)

    def _recolour(self) -> None:
        for _, line in self._lines.values():
            line.setPen(self._pen())
