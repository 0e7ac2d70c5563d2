"""Tool tips with text from outside: a device's name, a tensor's in somebody's file."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def plain_tip(text: str) -> str:
    """Return a text that Qt's tool tips show as it is; a label has a format of its own.

    A tool tip is read as HTML where `Qt::mightBeRichText` finds a tag or ``&lt;`` in it
    (https://doc.qt.io/qt-6/qt.html#mightBeRichText); only such a text is escaped.
    """
    if "<" not in text and "&lt;" not in text:
        return text
    return rich_tip(text.splitlines())


def rich_tip(lines: Iterable[str]) -> str:
    """Return lines of plain text as Qt's HTML, so that the tool tip breaks long ones."""
    return f"<qt>{'<br>'.join(map(html.escape, lines))}</qt>"
