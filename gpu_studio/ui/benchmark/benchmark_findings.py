"""What a run's work showed besides its time: sentences, and curves such as the loss."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.units import format_bytes, format_duration
from gpu_studio.ui.parts import Card, Text
from gpu_studio.ui.plots.live_plot import Curve, LivePlot
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.protocol import RunFinished
    from gpu_studio.ui.theme import Theme

_PLOT_HEIGHT = 190


class FindingsCard(Card):
    """Findings as they were told; `plot` is made with the first result that has a curve."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="benchmark.findings")
        self._theme = theme
        self.plot: LivePlot | None = None
        self._text = Text("", name="benchmark.findings.text", wraps=True)
        self.column.addWidget(Text("What it showed", "title"))
        self.column.addWidget(self._text)

    def show_result(self, result: RunFinished, beside: Mapping[str, RunFinished]) -> None:
        """Show what one result has to tell.

        Args:
            result: what is explained.
            beside: all results of the same work by what they are called, this one included.
        """
        lines = [*result.findings]
        peaks = [
            f"{label} {format_bytes(other.peak_allocated_bytes)}"
            for label, other in beside.items()
            if other.peak_allocated_bytes is not None
        ]
        if peaks:
            lines.append(f"Memory allocated at most: {', '.join(peaks)}.")
        lines.append(
            f"The first call of all took {format_duration(result.first_call_s)}, which no median "
            "counts."
        )
        self._text.setText("\n".join(lines))
        self._show_curves(result)

    def _show_curves(self, result: RunFinished) -> None:
        if result.curves and self.plot is None:
            self.plot = LivePlot(
                self._theme, name="benchmark.findings.plot", x_label="step", x_unit="count"
            )
            self.plot.setAccessibleName("What the work produced")
            self.plot.setFixedHeight(_PLOT_HEIGHT)
            self.column.addWidget(self.plot)
        if self.plot is None:
            return
        self.plot.clear()
        self.plot.setVisible(bool(result.curves))
        told = []
        for name, values in result.curves.items():
            role = device_role(result.device)
            self.plot.set_curve(name, Curve(name, role, partial(_steps, values), smooth=True))
            if values:
                told.append(f"{name} from {values[0]:.3g} to {values[-1]:.3g}")
        self.plot.describe("; ".join(told))


def _steps(values: tuple[float, ...]) -> tuple[ArrayLike, ArrayLike]:
    return range(1, len(values) + 1), values
