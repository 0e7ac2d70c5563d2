"""Loss curves side by side: the loss of each training step."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.units import counted
from gpu_studio.ui.plots.live_plot import AxesStyle, Curve, LivePlot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.ui.theme import Theme

# Curves differ in color, dashes and label.
_ROLES = ("gpu0", "cpu", "gpu1", "allocated")


class LossPlot(LivePlot):
    """A plot of losses by step; `show_losses` replaces all of them."""

    def __init__(self, theme: Theme, *, name: str) -> None:
        style = AxesStyle("step", "loss", x_unit="count", has_legend=True)
        super().__init__(theme, style, name=name)
        self.setMinimumHeight(170)

    def show_losses(self, losses: Mapping[str, Sequence[float]]) -> None:
        """Show one curve for each label, and describe them in words."""
        self.show_curves(
            {
                label: Curve(
                    label, _ROLES[place % len(_ROLES)], partial(_steps, tuple(values)),
                    dashed=place % 2 == 1,
                )
                for place, (label, values) in enumerate(losses.items())
            }
        )  # fmt: skip
        self.setAccessibleDescription(
            " ".join(
                f"{label}: {values[0]:.3g} to {values[-1]:.3g} in {counted(len(values), 'step')}."
                for label, values in losses.items()
                if values
            )
        )


def _steps(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    return range(len(values)), values
