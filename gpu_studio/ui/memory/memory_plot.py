"""Allocated and reserved over the time of an experiment, with names on the curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import format_bytes
from gpu_studio.ui.plots.live_plot import AxesStyle, Curve, CurveName, Level, LivePlot, Marker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.model.memory.engine_memory import Mark
    from gpu_studio.model.memory.now_model import NowModel
    from gpu_studio.ui.theme import Theme

_AXIS_HEIGHT = 40
_NEAR, _ROWS = 0.25, 3  # marks closer than this share of the axis have their labels in rows
_LEAST_TOP_BYTES = 4 << 20
_LEAST_LINES = 9  # of text: a lower plot is a strip


class MemoryPlot(LivePlot):
    """The curves of a model's device; `show_history` follows it."""

    def __init__(self, theme: Theme, model: NowModel) -> None:
        super().__init__(
            theme, AxesStyle(x_unit="s", y_unit="bytes"), name="memory.plot",
            empty="Press Run: the tensors appear here.",
        )  # fmt: skip
        self._model, self._identity, self._bytes_a_line = model, "", 0.0
        self.setAccessibleName("Memory over time")
        self.setMinimumHeight(_LEAST_LINES * self.fontMetrics().height())

    def show_history(self) -> None:
        """Draw the readings of the chosen device."""
        memory, history = self._model.memory, self._model.memory.history
        if memory.chosen.identity != self._identity:
            self._identity = memory.chosen.identity
            self._make_curves()
        ceiling_bytes = self._model.ceiling_bytes
        highest = max(
            (max(point.lower_bytes, point.upper_bytes or 0) for point in history.shown),
            default=0,
        )
        self.set_x_range(0, history.axis_s)
        top_bytes = max(highest, ceiling_bytes or 0, _LEAST_TOP_BYTES)
        self._bytes_a_line = top_bytes * self._label_share
        self.set_y_range(0, top_bytes + self._bytes_a_line)
        can_get = f"PyTorch can get {format_bytes(ceiling_bytes or 0)}"
        self.set_levels([Level(ceiling_bytes, can_get, "muted")] if ceiling_bytes else [])
        self.set_markers(markers(history.shown_marks, history.axis_s))
        self.set_names(self._curve_names())
        tank = memory.tank
        self.setAccessibleDescription(
            f"Memory over time. Now: {tank.sentence}" if tank else "No readings yet."
        )
        self.refresh()

    @property
    def _label_share(self) -> float:
        """The height of a label, as a share of the plot's below it."""
        height = 1.9 * self.fontMetrics().height()
        return height / max(self.height() - _AXIS_HEIGHT - height, height)

    def _make_curves(self) -> None:
        self.show_curves({})
        if not self._model.is_card:
            curve = Curve("GPU Studio", "cpu", self._lower, filled=True, stepped=True)
            self.set_curve("process", curve)
            return
        self.set_curve(
            "reserved", Curve("reserved", "allocated", self._upper, dashed=True, stepped=True)
        )
        self.set_curve(
            "allocated", Curve("allocated", "allocated", self._lower, filled=True, stepped=True)
        )

    def _lower(self) -> tuple[list[float], list[float]]:
        return self._model.memory.history.curve()

    def _upper(self) -> tuple[list[float], list[float]]:
        return self._model.memory.history.curve("upper")

    def _curve_names(self) -> list[CurveName]:
        """Return the curves' names with their last values; equal ones share a name."""
        (xs, lower), (_, upper) = self._lower(), self._upper()
        if not xs:
            return []
        at, allocated = xs[-1], format_bytes(lower[-1])
        if not self._model.is_card or not upper:
            return [CurveName(at, lower[-1], f"GPU Studio {allocated}", "cpu")]
        apart_bytes = upper[-1] - lower[-1]
        if apart_bytes < self._bytes_a_line / 2:  # no room for two names
            both = "and reserved" if not apart_bytes else f"{allocated}, reserved"
            name = f"Allocated {both} {format_bytes(upper[-1])}"
            return [CurveName(at, upper[-1], name, "allocated")]
        reserved = f"Reserved {format_bytes(upper[-1])}"
        is_above = apart_bytes < 2 * self._bytes_a_line
        return [
            CurveName(at, upper[-1], reserved, "allocated", is_above),
            CurveName(at, lower[-1], f"Allocated {allocated}", "allocated"),
        ]


def markers(marks: Sequence[Mark], axis_s: float) -> list[Marker]:
    """Return what marks the events; the labels of near ones stand below each other."""
    shown: list[Marker] = []
    for mark in marks:
        before = shown[-1] if shown else None
        is_near = before is not None and mark.at_s - before.x < _NEAR * axis_s
        row = (before.row + 1) % _ROWS if before is not None and is_near else 0
        role = "failure" if mark.is_failure else "accent"
        shown.append(Marker(mark.at_s, mark.label, role, row=row))
    return shown
