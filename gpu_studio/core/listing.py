"""Several things in one sentence: ``A, B and C``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def listed(names: Iterable[str], before_last: str = "and") -> str:
    """Return names as a list in a sentence: ``A, B and C``; empty for none.

    Args:
        names: in their order.
        before_last: the word before the last one; ``or`` for a choice.
    """
    *others, last = [*names] or [""]
    return f"{', '.join(others)} {before_last} {last}" if others else last
