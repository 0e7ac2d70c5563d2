"""The bars of a result, without their colors."""

from __future__ import annotations

import msgspec

WORK = frozenset({"compute", "computing"})
"""The parts of a bar that are the work itself."""


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar of a group; without a value it has not run.

    ``role`` is its color, by default that of ``device``; ``parts`` are the parts of the value;
    ``remark`` stands behind it. A hatched one needs another mark besides color.
    """

    name: str
    value: float | None = None
    text: str = ""
    role: str = ""
    device: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    remark: str = ""
    is_hatched: bool = False
