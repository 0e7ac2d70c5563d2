"""The words for options on the screen."""

import pytest

from gpu_studio.core.benchmark.option_words import option_words, value_words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("batch_by_batch", "batch by batch"),
        ("whole_set", "whole data set"),
        ("pinned_non_blocking", "pinned without waiting"),
        ("10000x100", "10,000 × 100"),
        ("float16", "float16"),
        ("x", "x"),
        ("", ""),
    ],
)
def test_a_value_has_no_identifiers(value: str, words: str) -> None:
    assert value_words(value) == words


def test_options_are_sorted_by_name() -> None:
    options = {"form": "statements", "amp_dtype": "float16", "data_set": "10000x100"}
    assert option_words(options) == [
        "AMP in float16", "data set 10,000 × 100", "ten separate lines",
    ]  # fmt: skip


def test_a_value_that_explains_itself_needs_no_name() -> None:
    assert option_words({"way": "batch_by_batch"}) == ["batch by batch"]
