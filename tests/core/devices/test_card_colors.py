"""A color is a card's own: it goes with the card to another slot, and waits for it if it is out."""

from __future__ import annotations

import pytest

from gpu_studio.core.devices.card_colors import MOST_CARDS, with_cards


@pytest.mark.parametrize(
    ("known", "present", "colors"),
    [
        ((), "AB", "AB"),
        ("AB", "BA", "AB"),
        ("AB", "B", "AB"),
        ("AB", "CB", "ABC"),
        ("ABC", "BD", "DBC"),
        ("ABC", "ABCD", "ABCD"),
        ("AA", "A", "A"),
    ],
    ids=["first", "swapped", "one is out", "replaced", "no color is free", "four", "twice"],
)
def test_a_card_keeps_its_color(known: tuple[str, ...] | str, present: str, colors: str) -> None:
    assert with_cards(tuple(known), tuple(present)) == tuple(colors)


def test_the_list_is_bounded() -> None:
    assert len(with_cards((), [str(number) for number in range(40)])) == MOST_CARDS
