"""The curves of one plot, replaced as a set.

Creating a curve takes milliseconds in the window's thread, but showing other values in it takes
almost no time. So a curve with an unchanged look is kept.

Loss curves side by side: the loss of each training step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.units import counted
from gpu_studio.ui.plots.live_plot import Curve, LivePlot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.series import Series
    from gpu_studio.ui.plots.live_plot import CurveSource
    from gpu_studio.ui.plots.plot_curve import Pieces
    from gpu_studio.ui.theme import Theme


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

    def _read(self, key: str) -> tuple[ArrayLike, ArrayLike] | Series | Pieces:
        return self._sources[key]()


# Curves differ in color, dashes and label.
_ROLES = ("gpu0", "cpu", "gpu1", "allocated")


class LossPlot(LivePlot):
    """A plot of losses by step; `show_curves` replaces all of them."""

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(
            theme, name=name, x_label="step", y_label="loss", x_unit="count",
            legend=len(_ROLES), parent=parent,
        )  # fmt: skip
        self.setMinimumHeight(170)
        self._set = CurveSet(self)

    def show_curves(self, curves: Mapping[str, Sequence[float]]) -> None:
        """Show one curve for each label, and describe them in words."""
        self._set.show(
            {
                label: (
                    Look(label, _ROLES[place % len(_ROLES)], dashed=place % 2 == 1),
                    _Steps(values),
                )
                for place, (label, values) in enumerate(curves.items())
            }
        )
        self.setAccessibleDescription(describe_losses(curves))


class _Steps:
    """One curve's points."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = tuple(values)

    def __call__(self) -> tuple[Sequence[float], Sequence[float]]:
        return range(len(self._values)), self._values


def describe_losses(curves: Mapping[str, Sequence[float]]) -> str:
    """Return the first and last loss of each curve in words."""
    return " ".join(
        f"{label}: {values[0]:.3g} to {values[-1]:.3g} in {counted(len(values), 'step')}."
        for label, values in curves.items()
        if values
    )
