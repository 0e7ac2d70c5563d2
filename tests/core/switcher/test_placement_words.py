from __future__ import annotations

import pytest

from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.devices.link import Link
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.placement_messages import FileInspected, TensorsPlaced
from gpu_studio.core.switcher.placement_words import (
    describe_file,
    explain_end,
    explain_failure,
    explain_move,
    explain_tensors,
)
from tests.fakes.switching_answers import place_finished


def plain(text):
    return text.replace("\u202f", " ")


def test_a_move_reports_bytes_time_allocator_and_proof():
    assert plain(explain_move(place_finished())) == (
        "84 KiB moved in 210 µs  ·  410 MB/s  ·  allocated +86,528 bytes  ·  "
        "same input, same output (largest difference 2.4e-7)"
    )


def test_a_move_to_a_card_that_nobody_has_tried_says_so():
    sentence = untested_sentence("AMD")
    assert explain_move(place_finished(untested=sentence)).endswith(f"  ·  {sentence}")


def test_a_move_back_frees():
    sentence = plain(explain_move(place_finished(allocated_delta_bytes=-86_528)))
    assert "allocated -86,528 bytes" in sentence


def test_on_the_cpu_nothing_moves_and_nothing_is_counted():
    sentence = explain_move(
        place_finished(
            device="cpu", moved_bytes=0, allocated_delta_bytes=None, largest_difference=0.0
        )
    )
    assert sentence == (
        "Nothing had to move: all 15 tensors are on cpu  ·  "
        "same input, same output (largest difference 0)"
    )
    one = explain_move(place_finished(device="cpu", moved_bytes=0, tensors=1, dtype="bfloat16"))
    assert one.startswith(
        "Nothing had to move: the 1 tensor is on cpu, floating-point ones bfloat16 now  ·  "
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"same_output": False, "largest_difference": 0.031},
            "different output: largest difference 0.031, more than the 1.0e-5 that rounding",
        ),
        ({"same_output": False, "largest_difference": None}, "is now NaN"),
        ({"same_output": None, "largest_difference": None}, "not compared"),
    ],
)
def test_a_move_that_is_not_proved_says_so(changes, words):
    sentence = explain_move(place_finished(**changes))
    assert words in sentence
    assert "same output" not in sentence


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_failure_keeps_the_engines_sentence_and_has_a_next_step(kind):
    sentence = explain_failure(Failure(kind, "cuda:7 is not there: this PC has cuda:0 to cuda:1."))
    assert sentence.startswith("cuda:7 is not there: this PC has cuda:0 to cuda:1. ")
    assert sentence.count(".") >= 2


def test_an_engine_that_ended_is_reported():
    assert "signal 9" in explain_end(EngineEnded(exit_code=-9))
    assert "before it answered" in explain_end(EngineEnded(exit_code=None, stopped=True))


def test_the_bandwidth_is_set_against_the_link():
    link = Link(generation=3, width=4)
    large = place_finished(moved_bytes=1_969_200_000, elapsed_s=1.0)
    assert "1.97 GB/s, 50 % of the 3.94 GB/s of the card's link (PCIe gen 3 × 4)" in plain(
        explain_move(large, link)
    )
    assert "copy overhead" not in explain_move(large, link)
    assert "so few bytes, most of the time is copy overhead" in explain_move(place_finished(), link)


def test_a_move_over_an_unknown_link_is_not_compared_with_it():
    unknown = explain_move(place_finished(), Link(generation=9, width=16))
    assert "410\u202fMB/s  ·" in unknown


def test_all_three_deltas_of_memory_are_reported():
    sentence = plain(explain_move(place_finished(reserved_delta_bytes=2 << 20, card_delta_bytes=0)))
    assert "reserved +2,097,152 bytes  ·  on the card +0 bytes" in sentence


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tolerance": 0.0, "largest_difference": 0.0}, "identical to the file bit for bit"),
        ({"tolerance": 0.01, "largest_difference": 0.002}, "except for rounding"),
        ({"same_output": False, "tolerance": 0.01}, "too large or too small for the new type"),
        ({"same_output": False, "tolerance": 0.0}, "different from the file"),
    ],
)
def test_a_files_proof_is_its_values(changes, sentence):
    assert sentence in explain_move(place_finished(proof="values", **changes))


def test_a_file_is_described_before_it_is_opened():
    inspected = FileInspected(
        path="x.pt", size_bytes=3 << 20, tensors=2, tensor_bytes=2 << 20, left_out=1
    )
    assert plain(describe_file(inspected)) == (
        "3 MiB on disk, 2 tensors of 2 MiB in memory. 1 other value in it will be left out. "
        "PyTorch opens it with weights_only, which runs no code."
    )


def test_both_ways_of_placing_tensors_are_reported():
    placed = TensorsPlaced(
        device="cuda:1", size=1000, dtype="float32", moved_bytes=4_000_000, cpu_made_s=0.004,
        moved_s=0.002, made_s=0.0001, same_values=True, result_device="cuda:1",
        allocated_delta_bytes=8_000_000,
    )  # fmt: skip
    sentence = plain(explain_tensors(placed, Link(generation=3, width=4)))
    assert "x: made on the CPU in 4.00 ms, moved in 2.00 ms" in sentence
    assert "w: made on cuda:1 in 100 µs" in sentence
    assert "2.00 GB/s, 51 % of" in sentence
    assert "allocated +8,000,000 bytes" in sentence
    assert sentence.endswith("bit for bit  ·  their product is on cuda:1")
