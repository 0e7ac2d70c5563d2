"""The curves of one plot, replaced as a set.

Creating a curve takes milliseconds in the window's thread, but showing other values in it takes
almost no time. So a curve with an unchanged look is kept.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.ui.plots.live_plot import Curve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from gpu_studio.core.series import Series
    from gpu_studio.ui.plots.live_plot import CurveSource, LivePlot


class Look(NamedTuple):
    """The look of a curve; see `Curve`."""

    label: str
    role: str
    symbol: str | None = None
    dashed: bool = False
    faint: bool = False
    dots: str | None = None


class CurveSet:
    """The curves of a plot, by key.

    Attributes:
        looks: the looks of the current curves, by key.
    """

    def __init__(self, plot: LivePlot) -> None:
        self._plot = plot
        self.looks: dict[str, Look] = {}
        self._sources: dict[str, CurveSource] = {}

    def show(self, curves: Mapping[str, tuple[Look, CurveSource]]) -> None:
        """Show these curves and no others."""
        for key in self.looks.keys() - curves.keys():
            self._plot.remove_curve(key)
            del self.looks[key], self._sources[key]
        for key, (look, source) in curves.items():
            self._sources[key] = source
            if self.looks.get(key) != look:
                self.looks[key] = look
                self._plot.set_curve(
                    key,
                    Curve(
                        look.label,
                        look.role,
                        partial(self._read, key),
                        symbol=look.symbol,
                        dashed=look.dashed,
                        faint=look.faint,
                        dots=look.dots,
                    ),
                )
        if self._plot.isVisible():
            self._plot.refresh()

    def _read(self, key: str) -> tuple[ArrayLike, ArrayLike] | Series:
        return self._sources[key]()
