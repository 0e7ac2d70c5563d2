"""The detectors of a check, with known differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gpu_studio.core.messages.check_messages import MOST_PLACES
from gpu_studio.engine.check.detectors import (
    SlowSteps,
    joined,
    mismatched_bits,
    wrong_bits,
)


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "float32", "int32", "float64"])
def test_one_bit_is_a_difference_in_every_dtype(dtype: str) -> None:
    first = torch.ones(5, dtype=getattr(torch, dtype))
    second = first.clone()
    assert mismatched_bits(first, second) is None
    second.view(torch.uint8)[first.element_size() * 3] ^= 1
    found = mismatched_bits(second, first)
    assert found is not None
    assert (found.count, found.total) == (1, 5)


def test_nan_equals_itself_bit_for_bit_and_zero_is_not_negative_zero() -> None:
    nan = torch.tensor([math.nan, 0.0])
    assert mismatched_bits(nan, nan.clone()) is None
    assert mismatched_bits(torch.tensor([-0.0]), torch.tensor([0.0])) is not None


def test_wrong_bits_have_their_addresses_and_directions() -> None:
    expected = np.array([0b1100, 0, -1, 5])
    # The highest bit of a word is the sign: it is missing in the largest number.
    largest = np.iinfo(np.int64).max
    seen = np.array([0b1010, 0, largest, 5])
    found = wrong_bits(seen, expected, 800)
    assert found is not None
    assert (found.first_byte, found.last_byte, found.words) == (800, 800 + 23, 2)
    assert (found.zero_to_one, found.one_to_zero) == (1, 2)
    assert wrong_bits(expected, expected.copy(), 0) is None


def test_the_first_wrong_words_are_listed_with_what_was_read() -> None:
    expected = np.full(100, -1, dtype=np.int64)
    found = wrong_bits(expected ^ (1 << 17), expected, 4096, "a walking zero")
    assert found is not None
    first = found.places[0]
    assert (first.at_byte, first.pattern) == (4096, "a walking zero")
    assert (first.expected, first.seen) == ("ffffffffffffffff", "fffffffffffdffff")
    assert len(found.places) == MOST_PLACES
    again = wrong_bits(expected ^ 1, expected, 0)
    both = joined(again, found)
    assert both is not None
    assert [one.at_byte for one in both.places] == [8 * word for word in range(MOST_PLACES)]


def test_wrong_bits_of_two_parts_add_up() -> None:
    zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    first, second = wrong_bits(one, zero, 0), wrong_bits(zero, one, 64)
    both = joined(first, second)
    assert both is not None
    assert (both.first_byte, both.last_byte, both.words) == (0, 71, 2)
    assert (both.zero_to_one, both.one_to_zero) == (1, 1)
    assert joined(first, None) == joined(None, first) == first


def never() -> float:
    raise AssertionError


def one_s() -> float:
    return 1.0


def with_usual_steps() -> SlowSteps:
    slow = SlowSteps()
    assert [slow.slowness(1.0, never, never) for _ in range(6)] == [None] * 6
    return slow


def test_a_step_that_stays_slow_is_slow() -> None:
    slow = with_usual_steps()
    assert slow.slowness(3.9, never, never) is None
    assert slow.slowness(10.0, lambda: 8.0, one_s) == 8.0


def test_a_step_that_was_delayed_once_is_not() -> None:
    times = iter([9.0, 9.0, 1.1])
    assert with_usual_steps().slowness(10.0, lambda: next(times), one_s) is None


def test_a_busy_pc_slows_a_usual_step_as_well() -> None:
    assert with_usual_steps().slowness(10.0, lambda: 9.0, lambda: 8.0) is None


def test_few_steps_say_nothing() -> None:
    slow = SlowSteps()
    assert slow.slowness(1.0, never, never) is None
    assert slow.slowness(100.0, never, never) is None
