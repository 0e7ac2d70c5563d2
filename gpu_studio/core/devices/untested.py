"""Which kinds of cards nobody has run this program on: their numbers say so.

A kind is tested once a recording of a run on a real card of its maker is committed.
"""

from __future__ import annotations

TESTED_MAKERS = frozenset({"NVIDIA"})
DOUBT = "not tested"
"""The kind of this doubt about a result, and its word in a cell."""
NOT_TESTED = "not tested on this kind of card yet"


def is_tested(maker: str) -> bool:
    """Return whether this program has run on a card of a maker; empty is the CPU's."""
    return not maker or maker in TESTED_MAKERS


def untested_sentence(maker: str) -> str:
    """Return the sentence beside numbers from a maker's cards; empty if they are tested."""
    if is_tested(maker):
        return ""
    return f"GPU Studio was {NOT_TESTED}: no recording from a card of {maker}'s is part of it."
