"""An SVG whose lines have their width in every program.

Qt draws a line of constant width in a stretched view: ``vector-effect="non-scaling-stroke"`` in a
group with a matrix. Programs without that property (librsvg, LibreOffice) stretch the line as well,
over the whole plot. So the matrix goes into the points. Qt's generator clips nothing either: what a
view does not show gets a clip path.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QRectF

_SVG = "http://www.w3.org/2000/svg"
_NUMBERS = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PAIR = re.compile(rf"({_NUMBERS.pattern})[\s,]+({_NUMBERS.pattern})")
_EFFECT = "vector-effect"
_CLIP = "view"


class _Matrix(NamedTuple):
    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    @property
    def is_stretched(self) -> bool:
        """Whether it changes shapes: those are of the view, in the units of its axes."""
        return abs(self.a * self.d - self.b * self.c - (self.a**2 + self.b**2)) > 1e-6 * (
            self.a**2 + self.b**2
        )

    def moved(self, text: str) -> str:
        """Return the text of a path or of points with every pair of numbers moved."""

        def one(pair: re.Match[str]) -> str:
            x, y = float(pair[1]), float(pair[2])
            across = self.a * x + self.c * y + self.e
            return f"{across:.3f},{self.b * x + self.d * y + self.f:.3f}"

        return _PAIR.sub(one, text)


def with_plain_strokes(contents: bytes, view: QRectF) -> bytes:
    """Return an SVG of Qt's generator with the matrices of its constant lines in their points.

    Args:
        contents: the file.
        view: the place of the plot's view; what is in the units of its axes is clipped to it.
    """
    for prefix, address in (("", _SVG), ("xlink", "http://www.w3.org/1999/xlink")):
        ET.register_namespace(prefix, address)
    root = ET.fromstring(contents)
    clip = ET.SubElement(ET.SubElement(root, _tag("defs")), _tag("clipPath"), {"id": _CLIP})
    place = {"x": view.x(), "y": view.y(), "width": view.width(), "height": view.height()}
    ET.SubElement(clip, _tag("rect"), {name: f"{value:.3f}" for name, value in place.items()})
    for group in root.iter(_tag("g")):
        numbers = _NUMBERS.findall(group.get("transform", ""))
        if len(numbers) == 6:
            _flatten(group, _Matrix(*map(float, numbers)))
    plain: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return plain


def _flatten(group: ET.Element, matrix: _Matrix) -> None:
    shapes: Sequence[ET.Element] = list(group)
    constant = any(shape.get(_EFFECT) == "non-scaling-stroke" for shape in shapes)
    if not constant or any(_points_of(shape) is None for shape in shapes):
        return
    for shape in shapes:
        name, text = _points_of(shape) or ("d", "")
        if shape.tag == _tag("rect"):
            shape.tag = _tag("path")
            for side in ("x", "y", "width", "height"):
                del shape.attrib[side]
        shape.set(name, matrix.moved(text))
        shape.attrib.pop(_EFFECT, None)
    del group.attrib["transform"]
    if matrix.is_stretched:
        group.set("clip-path", f"url(#{_CLIP})")


def _points_of(shape: ET.Element) -> tuple[str, str] | None:
    """Return the attribute of a shape's points and its text; None for what has none."""
    if shape.tag == _tag("path"):
        return "d", shape.get("d", "")
    if shape.tag in (_tag("polyline"), _tag("polygon")):
        return "points", shape.get("points", "")
    if shape.tag == _tag("rect"):
        x, y, width, height = (float(shape.get(one, "0")) for one in ("x", "y", "width", "height"))
        right, bottom = x + width, y + height
        return "d", f"M{x},{y} L{right},{y} L{right},{bottom} L{x},{bottom} Z"
    return None


def _tag(name: str) -> str:
    return f"{{{_SVG}}}{name}"
