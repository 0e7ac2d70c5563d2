from __future__ import annotations

import pytest

from gpu_studio.core.memory.fit_tank import inference_tank, parse_count, training_tank
from gpu_studio.core.memory.modelled_cards import ModelledCardChoice

MIB = 1 << 20
CARD = ModelledCardChoice(name="a card", total_bytes=1996 * MIB, context_bytes=60 * MIB)


def sizes(tank):
    return {part.key: part.size_bytes // MIB for part in tank.parts}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1), ("7B", 7 * 10**9), ("350 M", 350 * 10**6), ("1e9", 10**9), ("1 billion", 10**9),
        ("1,000,000", 10**6), ("0.5b", 5 * 10**8), ("11 million", 11 * 10**6), ("2 k", 2000),
        ("", None), ("many", None), ("-5", None), ("7 B parameters", None), ("1e999", None),
        ("1.2.3", None),
    ],
)  # fmt: skip
def test_a_number_of_parameters_is_read_as_people_write_it(text, count):
    assert parse_count(text) == count


def test_what_fits_leaves_the_rest_free():
    tank = training_tank(CARD, 400 * MIB)
    assert sizes(tank) == {
        "context": 60, "tensors": 100, "gradients": 100, "moments": 200, "free": 1536,
    }  # fmt: skip
    assert sum(part.size_bytes for part in tank.parts) == tank.total_bytes == CARD.total_bytes
    assert tank.card_bytes is None


def test_what_does_not_fit_goes_beyond_the_end_of_the_card():
    tank = inference_tank(CARD, 3000 * MIB)
    assert sizes(tank) == {"context": 60, "tensors": 3000}
    assert tank.total_bytes == 3060 * MIB
    assert tank.card_bytes == 1996 * MIB


def test_to_the_byte_at_the_end():
    exactly = CARD.total_bytes - CARD.context_bytes
    assert sizes(training_tank(CARD, exactly))["free"] == 0
    assert training_tank(CARD, exactly + 1).card_bytes == CARD.total_bytes
