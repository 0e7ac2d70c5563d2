from __future__ import annotations

import pytest

from gpu_studio.core.benchmark.run import (
    part_rows,
    parts_sentence,
)
from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.run_answers import finished, samples_of

REQUEST = RunWorkload(run_id="1", workload="elementwise", device="cuda:0", size=64, dtype="float32")


def result(**parts_s):
    return finished(REQUEST, samples_of(REQUEST), parts_s=parts_s)


def plain(text):
    return text.replace("\u202f", " ")


def test_every_part_has_its_time_and_its_share():
    rows = part_rows(result(**{"copy in": 3e-3, "compute": 1e-3}))
    assert [tuple(map(plain, row)) for row in rows] == [
        ("copy in", "3.00 ms", "75 %"),
        ("compute", "1.00 ms", "25 %"),
    ]


@pytest.mark.parametrize(
    ("parts_s", "sentence"),
    [
        ({"copy in": 3e-3, "compute": 1e-3},
         "X: 75 % of 4.00 ms is copying the operands to the card."),
        ({"copy in": 1e-3, "compute": 3e-3}, "X: 75 % of 4.00 ms is computing."),
        ({"launch": 9e-6, "compute": 1e-6},
         "X: 90 % of 10.0 µs is launching the work on the card."),
        ({"loading": 2.0, "computing": 1.0},
         "X: 67 % of 3.00 s is loading and preparing the data."),
        ({"waiting": 2.0, "computing": 1.0}, "X: 67 % of 3.00 s is waiting."),
        ({"compute": 1e-3}, "X: all of 1.00 ms is computing."),
        ({}, ""),
        ({"compute": 0.0}, ""),
    ],
)  # fmt: skip
def test_the_longest_part_is_reported_in_words(parts_s, sentence):
    assert plain(parts_sentence(result(**parts_s), "X")) == sentence


def test_parts_that_took_no_time_have_no_share():
    assert part_rows(result(compute=0.0)) == [("compute", "0\u202fs", "–")]
