"""A result on one picture to share, in words and bars: what the painter of the window draws.

The terminal has no Qt in its own process, so the same goes as JSON to a child that paints.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MOST_ROWS = 6
PAINTER = "gpu_studio.ui.result_card"

_Share = Annotated[float, Meta(ge=0.0, le=1.0)]


class CardBar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar in the color of a role, as a share of its row."""

    role: str
    share: _Share


class CardRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row: its title, its bars from the top, the value, and what stands below that.

    ``ceiling`` is the share of the row at which the device's own ceiling is, None if unknown.
    """

    title: str
    bars: tuple[CardBar, ...] = ()
    value: str
    note: str = ""
    ceiling: _Share | None = None


class CardKey(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a color is."""

    role: str
    name: str


class SharedCard(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of 1200 × 630.

    ``content`` is JSON in ASCII, for the text chunk with the keyword ``keyword``.
    """

    title: str
    stamp: str
    tone: Literal["good", "amber", "failure"]
    name: str
    headline: str
    line: str
    keys: tuple[CardKey, ...]
    rows: Annotated[tuple[CardRow, ...], Meta(max_length=MOST_ROWS)]
    note: str = ""
    facts: str = ""
    day: str = ""
    keyword: str
    content: str
    is_dark: bool = True


def ascii_json(content: bytes) -> str:
    """Return JSON in ASCII: Qt writes other texts in another kind of chunk."""
    return json.dumps(json.loads(content), separators=(",", ":"))


def encode_card(card: SharedCard) -> bytes:
    """Return a card as the input of a child."""
    return msgspec.json.encode(card)


def decode_card(content: bytes) -> SharedCard:
    """Return a card of this program's own.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return msgspec.json.decode(content, type=SharedCard)
