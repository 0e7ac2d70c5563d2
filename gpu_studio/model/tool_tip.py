"""Tool tips with text from outside, such as the name of a device or of a tensor in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def plain_tip(text: str) -> str:
    """Return a text that Qt's tool tips show unchanged; labels have a text format instead.

    A tool tip is read as HTML if `Qt::mightBeRichText` finds a tag or ``&lt;`` in it
    (https://doc.qt.io/qt-6/qt.html#mightBeRichText); only such a text is escaped.
    """
    if "<" not in text and "&lt;" not in text:
        return text
    return rich_tip(text.splitlines())


def rich_tip(lines: Iterable[str]) -> str:
    """Return lines of plain text as Qt's HTML, so that the tool tip wraps long ones."""
    import html  # 2 ms

    return f"<qt>{'<br>'.join(map(html.escape, lines))}</qt>"
