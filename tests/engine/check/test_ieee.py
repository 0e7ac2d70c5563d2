"""The references of the compute stage, against each other and against published answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from gpu_studio.engine.check.generators import KnownGenerator, card_words, philox
from gpu_studio.engine.check.ieee import (
    FORMATS,
    OPERATIONS,
    FloatFormat,
    answers,
    exact,
    format_of,
    is_nan,
    random_operands,
)
from tests.engine.check.benches import CPU, CardBench

if TYPE_CHECKING:
    from gpu_studio.engine.check.detectors import Mismatch


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_numpy_and_whole_numbers_give_the_same_bits(form: FloatFormat, operation: str) -> None:
    operands = random_operands(form, np.random.default_rng(3), 800)
    used = {"sqrt": operands[1:2], "fma": operands}.get(operation, operands[1:])
    result = answers(operation, form, used)[0]
    whole = [exact(operation, form, *(int(bits[at]) for bits in used)) for at in range(800)]
    again = np.array(whole, dtype=form.bits_dtype)
    same = (result == again) | (is_nan(result, form) & is_nan(again, form))
    assert same.all()
    # Every kind of number is among the results.
    finite = ~is_nan(result, form)
    assert 0 < finite.sum() < 800


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize(
    ("operation", "operands", "result"),
    [
        ("add", (1.0, 2.0**-24), 1.0),  # a tie goes to even
        ("add", (1.0, 2.0**-24 + 2.0**-40), 1 + 2.0**-23),
        ("mul", (2.0**-100, 2.0**-49), 2.0**-149),  # the smallest number there is
        ("mul", (2.0**-100, 2.0**-51), 0.0),
        ("div", (1.0, 3.0), 0.3333333432674408),
        ("sqrt", (2.0,), 1.4142135381698608),
        ("fma", (-1.0, 1 + 2.0**-23, 1 - 2.0**-23), -(2.0**-46)),  # rounded twice, it is 0
        ("sub", (1.0, 1.0), 0.0),
        ("mul", (2.0**100, 2.0**100), float("inf")),
    ],
)
def test_published_roundings(operation: str, operands: tuple[float, ...], result: float) -> None:
    form = format_of("float32")
    assert exact(operation, form, *(bits(one) for one in operands)) == bits(result)


def test_philox_gives_its_published_words() -> None:
    """The known-answer tests of Random123 (D. E. Shaw Research) for philox4x32-10."""
    counters = np.array([[0] * 4, [0xFFFFFFFF] * 4], dtype=np.uint64)
    first, second = philox(counters[:1], 0)[0], philox(counters[1:], 2**64 - 1)[0]
    assert [f"{word:08x}" for word in first] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert [f"{word:08x}" for word in second] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


def seen_of(words: list[int]) -> tuple[KnownGenerator, Mismatch | None]:
    """Return a card's generator after these whole numbers, and what is wrong with them."""
    bench = CardBench("compute", CPU, 1.0)
    generator = KnownGenerator(is_whole=True)
    generator.prepare(bench)
    return generator, generator.wrong(torch.tensor(words, dtype=torch.int32))


def words_of_a_card() -> list[int]:
    bench = CardBench("compute", CPU, 1.0)
    seed = int(bench.numbers.integers(1, 1 << 31))
    # Each of the first threads gives the first word of its stream.
    return [int(word) & 0x7FFFFFFF for word in card_words(seed)[: 4 * 1024 : 4]]


def test_a_card_gives_the_words_of_philox() -> None:
    assert seen_of(words_of_a_card())[1] is None


def test_a_word_of_a_card_that_is_not_philoxs_is_an_error() -> None:
    words = words_of_a_card()
    words[7] ^= 1 << 20
    generator, found = seen_of(words)
    assert found is not None
    assert (found.count, found.first) == (1, 7)
    assert generator.severity == "error"


def test_a_generator_that_sticks_is_an_error_and_another_algorithm_a_doubt() -> None:
    stuck, found = seen_of([1] * 1024)
    assert found is not None
    assert stuck.severity == "error"
    other, found = seen_of([3 + 2_000_003 * place for place in range(1024)])
    assert found is not None
    assert (other.severity, other.kind) == ("doubt", "not_repeatable")
