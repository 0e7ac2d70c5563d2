"""Fewer of many moments, evenly over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_Moment = TypeVar("_Moment")


def thinned(moments: Sequence[_Moment], most: int) -> tuple[_Moment, ...]:
    """Return at most so many moments, the first and the last one among them; of one, the last."""
    if len(moments) <= most:
        return tuple(moments)
    if most < 2:
        return (moments[-1],) * most
    last = len(moments) - 1
    return tuple(moments[round(number * last / (most - 1))] for number in range(most))
