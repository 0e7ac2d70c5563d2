"""The marks of events in a plot of memory over time: no label crosses another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.model.memory.memory_history import Mark
    from gpu_studio.ui.plots.live_plot import LivePlot

_LABEL_GAP, _AXIS_WIDTH = 16, 70


def markers(
    marks: Sequence[Mark], span_s: tuple[float, float], plot: LivePlot
) -> list[tuple[float, str, str]]:
    """Return what marks the events: place, label and color role. Important ones get labels first.

    An event whose label would cross another label has none, and no line through it.

    Args:
        marks: the events in the shown time.
        span_s: start and end of the shown time.
        plot: has the width and the font.
    """
    labelled: dict[int, tuple[float, float]] = {}
    for mark in sorted(marks, key=_importance):
        left_s, right_s = _label_place(mark, span_s, plot)
        if all(right_s <= left or right <= left_s for left, right in labelled.values()):
            labelled[id(mark)] = (left_s, right_s)
    return [
        (
            mark.at_s,
            mark.label if id(mark) in labelled else "",
            "failure" if mark.is_failure else "muted",
        )
        for mark in marks
        if id(mark) in labelled
        or not any(left < mark.at_s < right for left, right in labelled.values())
    ]


def _label_place(mark: Mark, span_s: tuple[float, float], plot: LivePlot) -> tuple[float, float]:
    """Return the place of a mark's label: right of its line, or left in the right half."""
    start_s, end_s = span_s
    width = plot.fontMetrics().horizontalAdvance(mark.label) + _LABEL_GAP
    width_s = width / max(plot.width() - _AXIS_WIDTH, 1) * (end_s - start_s)
    if mark.at_s < (start_s + end_s) / 2:
        return mark.at_s, mark.at_s + width_s
    return mark.at_s - width_s, mark.at_s


def _importance(mark: Mark) -> tuple[bool, bool, float]:
    """Order marks: failures, then user actions, then automatic events; newest first."""
    return not mark.is_failure, mark.is_minor, -mark.at_s
