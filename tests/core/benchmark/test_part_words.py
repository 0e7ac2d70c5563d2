from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.benchmark.run import (
    part_rows,
    parts_beside_median,
    parts_beside_medians,
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


def test_parts_with_copies_are_set_beside_a_median_without() -> None:
    parts = {"copy in": 4e-3, "launch": 1e-5, "compute": 4e-5, "copy out": 5e-3}
    alone = finished(REQUEST, (51.2e-6,) * 20, parts_s=parts)
    sentence = plain(parts_beside_median(alone))
    assert "50.0 µs" in sentence
    assert "51.2 µs" in sentence
    with_them = msgspec.structs.replace(alone, transfers=True, median_s=9.05e-3)
    assert parts_beside_median(with_them) == ""
    assert parts_beside_median(msgspec.structs.replace(alone, parts_s={"compute": 4e-5})) == ""


def test_parts_that_do_not_add_up_to_the_call_are_set_beside_it() -> None:
    feeding = finished(
        REQUEST, (96e-3,) * 20, parts_s={"loading": 0.1, "copying": 6e-3, "computing": 0.03}
    )
    sentence = plain(parts_beside_median(feeding))
    assert "136 ms" in sentence
    assert "96.0 ms" in sentence
    alike = msgspec.structs.replace(feeding, median_s=0.13)
    assert parts_beside_median(alike) == ""


def test_several_calls_are_set_beside_their_parts_once() -> None:
    parts = {"loading": 0.1, "copying": 6e-3}
    shorter = finished(REQUEST, (96e-3,) * 20, parts_s=parts)
    shortest = msgspec.structs.replace(shorter, median_s=0.05)
    alike = msgspec.structs.replace(shorter, median_s=0.106)
    copies = finished(REQUEST, (5e-5,) * 20, parts_s={"copy in": 4e-3, "compute": 4e-5})
    (sentence,) = parts_beside_medians({"a": shorter, "b": shortest})
    assert "overlap" in sentence
    assert "ms" not in sentence
    some = parts_beside_medians({"a": shorter, "b": shortest, "c": alike, "d": copies})
    assert some[0] == f"“a”, “b”: {sentence}"
    assert some[1] == f"d: {parts_beside_median(copies)}"
    assert len(some) == 2
