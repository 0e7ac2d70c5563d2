"""Which color each card of this PC has: that of the card, whatever number or slot it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOR_COUNT = 3
"""More cards than colors share the last color."""
MOST_CARDS = 16
"""A list of cards has no more than these."""


def with_cards(known: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    """Return the cards by their colors: the place of a card in the list is its color.

    A card keeps its place while it is known, also out of the PC, so that its kept runs keep their
    color. A new card gets a color that no card has, then that of a card that is gone.

    Args:
        known: the list so far.
        present: the permanent names of the cards of this PC, in their order.
    """
    cards = list(dict.fromkeys(known))[:MOST_CARDS]
    for card in present:
        if card in cards:
            continue
        gone = next((one for one in cards[:COLOR_COUNT] if one not in present), None)
        if len(cards) < COLOR_COUNT or gone is None:
            cards.append(card)
        else:
            cards[cards.index(gone)] = card
    return tuple(cards[:MOST_CARDS])
