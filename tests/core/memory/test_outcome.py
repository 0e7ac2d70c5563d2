from typing import Any

import pytest

from gpu_studio.core.memory.outcome import (
    describe_filling,
    explain_outcome,
    free_within,
    is_leak,
    outcome_notice,
    outcome_of,
)
from gpu_studio.core.messages.memory_messages import OUTCOMES, MemoryRead, OomFinished, SegmentsRead
from gpu_studio.core.notice import Notice, Tone
from tests.fakes.memory_answers import memory_read, no_context, oom_finished

MIB = 1 << 20
TOTAL = 2000 * MIB
FULL = "CUDA out of memory. Tried to allocate 256.00 MiB."


def read(free: int, reserved: int, allocated: int | None = None, **more: Any) -> MemoryRead:
    return MemoryRead(
        device="cuda:0", taken_at_s=0.0, total_bytes=TOTAL, free_bytes=free * MIB,
        reserved_bytes=reserved * MIB,
        allocated_bytes=(reserved if allocated is None else allocated) * MIB, **more,
    )  # fmt: skip


START = read(free=1940, reserved=0)


def last(free: int, reserved: int, holes: int = 0, limit: int | None = None) -> SegmentsRead:
    now = read(free, reserved, reserved - holes, limit_bytes=limit and limit * MIB)
    return SegmentsRead(
        device="cuda:0", read=now, largest_block_bytes=0, free_total_bytes=(free + holes) * MIB
    )


@pytest.mark.parametrize(
    ("at_end", "error_text", "outcome"),
    [
        (last(free=148, reserved=1792), FULL, "card_full"),
        (last(free=148, reserved=1792), "", "fits"),
        (last(free=148, reserved=1792, holes=107), FULL, "card_full"),
        (last(free=148, reserved=1792, holes=108), FULL, "fragmented"),
        (last(free=660, reserved=1280, limit=1500), FULL, "over_budget"),
        # Holes of a few percent of the card are usual on a full one.
        (last(free=660, reserved=1280, holes=62, limit=1500), FULL, "over_budget"),
        (last(free=660, reserved=1280, holes=63, limit=1500), FULL, "fragmented"),
        (last(free=200, reserved=1740, holes=60), FULL, "card_full"),
        # The driver refused before the limit did.
        (last(free=148, reserved=1792, limit=1950), FULL, "card_full"),
        (last(free=0, reserved=1940, limit=1950), FULL, "card_full"),
        # Others had 60 MiB at the start.
        (last(free=168, reserved=768), FULL, "taken_by_others"),
        (last(free=0, reserved=1690), FULL, "card_full"),  # 250 more would not have been enough
        (last(free=130, reserved=1800), FULL, "card_full"),  # 10 more are noise
        (last(free=0, reserved=1940), "", "fits"),
        (last(free=0, reserved=1956), "", "fits"),
        (last(free=0, reserved=1957), "", "spilled"),
    ],
)
def test_the_readings_say_what_it_was(at_end: SegmentsRead, error_text: str, outcome: str):
    assert outcome in OUTCOMES
    notice_of = outcome_of(START, at_end, error_text, tensor_bytes=256 * MIB)
    assert notice_of == outcome
    assert outcome_of(START, at_end, error_text) == outcome


def test_what_was_asked_for_counts_to_the_byte():
    """1.89 GiB, as the text rounds it, would have fitted into 1936 MiB; 1936 MiB and 2 do not."""
    at_end = last(free=1936, reserved=0)
    text = "CUDA out of memory. Tried to allocate 1.89 GiB."
    assert outcome_of(START, at_end, text, tensor_bytes=1937 * MIB) == "card_full"


def test_without_any_number_memory_has_still_ended():
    text = "NVML_SUCCESS == r INTERNAL ASSERT FAILED"
    assert outcome_of(START, last(free=148, reserved=1792), text) == "card_full"
    limited = last(free=660, reserved=1280, limit=1500)
    assert outcome_of(START, limited, text) == "over_budget"


def test_a_leak_grows_at_every_step():
    at_end = last(free=148, reserved=1792)
    grows = [100, 200, 300, 301]
    assert outcome_of(START, at_end, FULL, step_ends=grows) == "leak"
    assert outcome_of(START, at_end, "", step_ends=grows) == "fits"
    assert is_leak([1, 2, 3])
    for ends in ([], [1], [1, 2], [1, 2, 2], [3, 2, 1], [1, 3, 2, 4]):
        assert not is_leak(ends)


def test_what_lies_beyond_a_limit_is_not_to_be_had():
    assert free_within(1800 * MIB, 100 * MIB, 1500 * MIB) == 1400 * MIB
    assert free_within(1800 * MIB, 100 * MIB, 2000 * MIB) == 1800 * MIB
    assert free_within(1800 * MIB, 1600 * MIB, 1500 * MIB) == 0
    assert free_within(1800 * MIB, 100 * MIB, None) == 1800 * MIB
    assert free_within(1800 * MIB, None, 1500 * MIB) == 1800 * MIB


def notice_of(finished: OomFinished) -> Notice:
    return outcome_notice(explain_outcome(finished))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_its_words(outcome: str):
    finished = OomFinished(
        device="cuda:0", outcome=outcome, preset="custom", tensors=7, tensor_bytes=256 * MIB,
        steps=14, allocated_bytes=1792 * MIB, reserved_bytes=1800 * MIB, tried_bytes=256 * MIB,
        free_bytes=100 * MIB, total_bytes=TOTAL, limit_bytes=1900 * MIB, unallocated_bytes=8 * MIB,
        largest_block_bytes=90 * MIB, free_total_bytes=108 * MIB, others_grew_bytes=500 * MIB,
        error_text=FULL,
    )  # fmt: skip
    words = notice_of(finished)
    others = [notice_of(OomFinished(device="", outcome=name, tensors=1, tensor_bytes=1))
              for name in OUTCOMES if name != outcome]  # fmt: skip
    assert words.sentence.endswith(".")
    assert words.sentence not in [other.sentence for other in others]
    assert words.detail.endswith(".")
    assert words.next_step.endswith(".")
    number = {
        "fragmented": "90", "taken_by_others": "500", "over_budget": "1.86", "leak": "7 steps",
        "spilled": "7 tensors", "fits": "7 tensors",
    }.get(outcome, "")  # fmt: skip
    assert number in words.detail


def plain(text):
    return text.replace("\u202f", " ")


def test_over_the_budget_names_the_limit_and_what_was_free():
    outcome = notice_of(oom_finished("over_budget"))
    sentence = plain(outcome.detail)
    assert "Tensor 5 asked for 256 MiB when 1 GiB was allocated." in sentence
    assert "allows 1.17 GiB; 634 MiB of the card was still free" in sentence
    assert outcome.tone == Tone.AMBER
    assert "not full" in outcome.next_step


def test_a_full_card_names_what_was_free_and_what_lay_in_pieces():
    outcome = notice_of(oom_finished("card_full", free_bytes=154 << 20, unallocated_bytes=8 << 20))
    sentence = plain(outcome.detail)
    assert "allocated. 154 MiB of 1.95 GiB was free" in sentence
    assert sentence.endswith(", and 8 MiB was reserved in pieces that are too small.")
    assert outcome.tone == Tone.FAILURE


def test_numbers_that_the_error_does_not_report_are_left_out():
    bare = oom_finished(
        "card_full", allocated_bytes=None, tried_bytes=None, free_bytes=None, total_bytes=None,
        unallocated_bytes=None, limit_bytes=None,
    )  # fmt: skip
    sentence = plain(notice_of(bare).detail)
    assert "Tensor 5 asked for 256 MiB." in sentence
    assert "None" not in sentence
    over = oom_finished("over_budget", limit_bytes=None)
    assert "budget allows" not in notice_of(over).detail


def test_a_refusal_quotes_one_line_of_the_error():
    words = notice_of(oom_finished("refused", error_text="first line\nsecond line"))
    assert "first line" in words.detail
    assert "second line" not in words.detail


def test_the_filling_is_reported_while_it_goes_on():
    notice_of = plain(describe_filling(memory_read(allocated=512, reserved=520), 1200 << 20))
    assert notice_of == "512 MiB allocated, 520 MiB reserved, of a budget of 1.17 GiB."
    assert describe_filling(no_context(), 1 << 20) == "CUDA is starting."
