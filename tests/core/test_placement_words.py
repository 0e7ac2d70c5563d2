from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.placement_words import explain_end, explain_failure, explain_move
from gpu_studio.core.protocol import EngineEnded
from tests.fakes import place_finished


def plain(text):
    return text.replace("\u202f", " ")


def test_a_move_tells_bytes_time_allocator_and_proof():
    assert plain(explain_move(place_finished())) == (
        "84 KiB moved in 210 µs  ·  allocated +86 528 bytes  ·  "
        "same input, same output (largest difference 2.4e-7)"
    )


def test_a_move_back_frees():
    told = plain(explain_move(place_finished(allocated_delta_bytes=-86_528)))
    assert "allocated -86 528 bytes" in told


def test_on_the_cpu_nothing_moves_and_nothing_is_counted():
    told = explain_move(
        place_finished(
            device="cpu", moved_bytes=0, allocated_delta_bytes=None, largest_difference=0.0
        )
    )
    assert told == (
        "Nothing had to move: all 15 tensors are on cpu  ·  "
        "same input, same output (largest difference 0)"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"same_output": False, "largest_difference": 0.031},
            "another output: largest difference 0.031, more than the 1.0e-5 that rounding",
        ),
        ({"same_output": False, "largest_difference": None}, "has become NaN"),
        ({"same_output": None, "largest_difference": None}, "was not compared"),
    ],
)
def test_a_move_that_is_not_proved_says_so(changes, said):
    told = explain_move(place_finished(**changes))
    assert said in told
    assert "same output" not in told


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_failure_keeps_the_engines_sentence_and_has_a_next_step(kind):
    told = explain_failure(Failure(kind, "cuda:7 is not there: this PC has cuda:0 to cuda:1."))
    assert told.startswith("cuda:7 is not there: this PC has cuda:0 to cuda:1. ")
    assert told.count(".") >= 2


def test_an_engine_that_ended_is_told():
    assert "signal 9" in explain_end(EngineEnded(exit_code=-9))
    assert "before it had answered" in explain_end(EngineEnded(exit_code=None, stopped=True))
