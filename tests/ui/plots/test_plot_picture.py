"""A plot as an SVG that every program draws alike."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from PySide6.QtCore import Qt

from gpu_studio.ui.plots.live_plot import Curve
from gpu_studio.ui.plots.plot_picture import svg_of
from tests.ui.plots.drawn import spiky

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def drawing(qtbot, shown, theme):
    """Return a plot's SVG, of everything or looked at more closely."""

    def draw(*, closer: bool) -> ET.Element:
        series = spiky()
        plot = shown(steady=True, zoomable=True)
        plot.set_curve("a", Curve("A", "cpu", lambda: series))
        plot.setFocus()
        for _ in range(6 * closer):
            qtbot.keyClick(plot, Qt.Key.Key_Plus)
        return ET.fromstring(svg_of(plot, "A title", theme))

    return draw


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


@pytest.mark.parametrize("closer", [False, True])
def test_no_program_can_stretch_a_line(drawing, theme, closer):
    """Without the property for it, a line was as wide as the plot."""
    root = drawing(closer=closer)
    for group in filter(len, root.iter(f"{_SVG}g")):
        a, b, c, d = (numbers(group.get("transform", "")) or [1, 0, 0, 1])[:4]
        assert (abs(a), abs(b)) == pytest.approx((abs(d), abs(c)))
    effects = {one.get("vector-effect") for one in root.iter()}
    assert "non-scaling-stroke" not in effects


@pytest.mark.parametrize("closer", [False, True])
def test_a_curve_is_where_its_view_is(drawing, theme, closer):
    root = drawing(closer=closer)
    width, height = (float(root.get("viewBox").split()[place]) for place in (2, 3))
    (view,) = root.iter(f"{_SVG}clipPath")
    (place,) = view
    left, top, across, down = (float(place.get(one)) for one in ("x", "y", "width", "height"))
    assert 0 < left < left + across <= width
    assert 0 < top < top + down <= height
    assert across > 0.7 * width
    ink = theme.colour("cpu_ink").lower()
    clip = f"url(#{view.get('id')})"
    clipped = [one for one in root.iter(f"{_SVG}g") if one.get("clip-path") == clip]
    curves = [one for one in clipped if one.get("stroke") == ink]
    inside = 0
    for curve in curves:
        assert float(curve.get("stroke-width")) < 4
        for shape in curve:
            points = numbers(shape.get("d") or shape.get("points"))
            inside += sum(
                left - 1 <= x <= left + across + 1 and top - 1 <= y <= top + down + 1
                for x, y in zip(points[::2], points[1::2], strict=True)
            )
    assert inside > 20
