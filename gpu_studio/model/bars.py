"""The bars of a result."""

from __future__ import annotations

import msgspec

WORK = frozenset({"compute", "computing"})
"""The parts of a bar that are the work itself."""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar of a group; without a value it has not run.

    Attributes:
        name: the name at the left.
        value: its length, in the unit of the group; None shows an empty track.
        text: the value with its unit, at the right.
        role: its color, by default that of ``device``.
        device: the address.
        parts: what the value is the sum of, by name; empty if the bar is whole.
        is_hatched: whether it needs another mark besides color.
        interval: where the value may lie, in the unit of the group.
        verdict: what the value means, behind it; bold if it ``counts``.
        counts: whether the verdict is a difference that counts.
        tip: the text that appears under the mouse; by default the name and the value.
    """

    name: str
    value: float | None = None
    text: str = ""
    role: str = ""
    device: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    is_hatched: bool = False
    interval: tuple[float, float] | None = None
    verdict: str = ""
    counts: bool = False
    tip: str = ""
