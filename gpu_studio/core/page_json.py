"""JSON inside a page (HTML), from which this program opens the page again.

The JSON is the text of a ``template`` element: no browser shows it, runs it, or needs a script for
it. It has none of the characters of markup, because JSON can write them as numbers, so the element
ends at the first one of them and nothing has to be unescaped.
"""

from __future__ import annotations

_ESCAPES = {b"&": b"\\u0026", b"<": b"\\u003c", b">": b"\\u003e"}
_ELEMENT_END = b"<"


def json_element(keyword: str, content: bytes) -> str:
    """Return the element with a JSON text.

    Args:
        keyword: the element's id: letters, digits and hyphens.
        content: JSON in UTF-8.
    """
    for character, escape in _ESCAPES.items():
        content = content.replace(character, escape)
    return f'<template id="{keyword}">{content.decode()}</template>'


def json_in_page(page: bytes, keyword: str) -> bytes | None:
    """Return the JSON text in a page; None if it has none, or no end of it.

    Pages of older versions have it in a ``script`` element with the same id.

    Args:
        page: from anywhere: the text has to be decoded with limits.
        keyword: the element's id.
    """
    begin = page.find(b' id="%b">' % keyword.encode())
    if begin < 0:
        return None
    begin = page.index(b">", begin) + 1
    end = page.find(_ELEMENT_END, begin)
    return page[begin:end] if end >= 0 else None
