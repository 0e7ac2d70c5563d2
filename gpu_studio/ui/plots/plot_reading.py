"""The values of a plot's curves under the mouse, as a tool tip that follows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtWidgets import QToolTip

from gpu_studio.model.text_rows import rich_tip
from gpu_studio.ui.plots.plot_style import value_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QMouseEvent

    from gpu_studio.ui.plots.plot_canvas import PlotCanvas
    from gpu_studio.ui.plots.plot_curve import Curve
    from gpu_studio.ui.plots.plot_style import AxesStyle

# A point further from the mouse belongs to another place of the plot.
_FARTHEST = 40  # pixels


def read_at_mouse(plot: PlotCanvas, curves: Iterable[Curve], event: QMouseEvent | None) -> None:
    """Show the nearest point of each curve; nothing if the mouse is outside the plot."""
    box, lines = plot.plotItem.vb, []
    scene = plot.mapToScene(event.position().toPoint()) if event is not None else None
    if scene is not None and box.sceneBoundingRect().contains(scene):
        seen = float(box.mapSceneToView(scene).x())
        x = 10**seen if plot.axes_style.logarithmic_x else seen
        reach = _FARTHEST * abs(float(box.viewPixelSize()[0]))
        lines = reading_lines(curves, plot.axes_style, x, reach)
    if event is not None and lines:
        QToolTip.showText(event.globalPosition().toPoint(), rich_tip(lines), plot)
    else:
        QToolTip.hideText()


def reading_lines(curves: Iterable[Curve], style: AxesStyle, x: float, reach: float) -> list[str]:
    """Return the place of the nearest point, and below it the value of each curve there.

    Args:
        curves: the drawn ones.
        style: the units of the axes.
        x: the place, in the data's own scale.
        reach: the largest distance along the axis; in decades if it is logarithmic.
    """
    nearest: list[tuple[float, float, str]] = []
    for curve in curves:
        found = _nearest(curve, x, logarithmic=style.logarithmic_x)
        if found is not None and found[0] <= reach:
            value = value_text(found[2], style.y_unit)
            nearest.append((found[0], found[1], ": ".join(filter(None, (curve.label, value)))))
    if not nearest:
        return []
    at = value_text(min(nearest)[1], style.x_unit)
    head = at if style.x_unit == "size" else f"{style.x_label} {at}".strip()
    return [head, *(line for _, _, line in nearest)]


def _nearest(curve: Curve, x: float, *, logarithmic: bool) -> tuple[float, float, float] | None:
    """Return the distance, x and y of a curve's nearest drawn point; None without any."""
    if curve.shown is None or not len(curve.shown.xs):
        return None
    xs, ys = curve.shown.xs, curve.shown.ys
    apart = np.abs(np.log10(xs / x)) if logarithmic else np.abs(xs - x)
    apart = np.where(np.isfinite(ys), apart, math.inf)
    at = int(apart.argmin())
    if not math.isfinite(apart[at]):
        return None
    return float(apart[at]), float(xs[at]), float(ys[at])
