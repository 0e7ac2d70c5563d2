"""Draws for a page: lines, areas and words as the elements of one SVG picture.

The colors are classes of the page's style, one for each role: they follow its light and dark.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Anchor = Literal["left", "middle", "right"]
Dash = Literal["solid", "dashed", "dotted"]
EM = 13.0
_ANCHORS = {"left": "start", "middle": "middle", "right": "end"}
_DASHES = {"solid": "", "dashed": ' stroke-dasharray="6 4"', "dotted": ' stroke-dasharray="2 3"'}
# A little more than the mean width of a letter in the widest of the usual fonts.
_LETTER, _BOLD_LETTER = 0.6, 0.66


class SvgCanvas:
    """Collects elements; `svg` returns them as one picture."""

    def __init__(self) -> None:
        self._elements: list[str] = []

    def line(
        self, x1: float, y1: float, x2: float, y2: float, role: str, *, dash: Dash = "solid"
    ) -> None:
        self._elements.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'class="s-{role}"{_DASHES[dash]}/>'
        )

    def curve(
        self, points: Sequence[tuple[float, float]], role: str, *, dash: Dash = "solid"
    ) -> None:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._elements.append(
            f'<polyline points="{places}" class="s-{role} thick"{_DASHES[dash]}/>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, role: str, *, tip: str = ""
    ) -> None:
        title = f"<title>{html.escape(tip)}</title>" if tip else ""
        self._elements.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" '
            f'class="f-{role}">{title}</rect>'
        )

    def text(
        self, x: float, y: float, text: str, role: str, *, anchor: Anchor = "left",
        bold: bool = False,
    ) -> None:  # fmt: skip
        weight = ' font-weight="600"' if bold else ""
        self._elements.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{_ANCHORS[anchor]}" '
            f'dominant-baseline="central" class="f-{role}"{weight}>{html.escape(text)}</text>'
        )

    def text_width(self, text: str, *, bold: bool = False) -> float:
        return len(text) * EM * (_BOLD_LETTER if bold else _LETTER)

    def svg(self, width: float, height: float, description: str) -> str:
        """Return the picture; the description is for people who do not see it."""
        return (
            f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            f'aria-label="{html.escape(description, quote=True)}">{"".join(self._elements)}</svg>'
        )
