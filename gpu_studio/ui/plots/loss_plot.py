"""Loss curves side by side: the loss of each training step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import counted
from gpu_studio.ui.plots.curve_set import CurveSet, Look
from gpu_studio.ui.plots.live_plot import LivePlot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.theme import Theme

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
