from typing import Any

import pytest

from gpu_studio.core.memory.outcome import free_within, is_leak, outcome_notice, outcome_of
from gpu_studio.core.messages.memory_messages import OUTCOMES, MemoryRead, SegmentsRead
from tests.fakes.memory_answers import oom_finished

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
    assert outcome_of(START, at_end, error_text, tensor_bytes=256 * MIB) == outcome


def test_a_leak_grows_at_every_step():
    at_end = last(free=148, reserved=1792)
    grows = [100, 200, 300, 301]
    assert outcome_of(START, at_end, FULL, tensor_bytes=256 * MIB, step_ends=grows) == "leak"
    assert outcome_of(START, at_end, "", tensor_bytes=256 * MIB, step_ends=grows) == "fits"
    assert is_leak([1, 2, 3])
    for ends in ([], [1], [1, 2], [1, 2, 2], [3, 2, 1], [1, 3, 2, 4]):
        assert not is_leak(ends)


def test_what_lies_beyond_a_limit_is_not_to_be_had():
    assert free_within(1800 * MIB, 100 * MIB, 1500 * MIB) == 1400 * MIB
    assert free_within(1800 * MIB, 100 * MIB, 2000 * MIB) == 1800 * MIB
    assert free_within(1800 * MIB, 1600 * MIB, 1500 * MIB) == 0
    assert free_within(1800 * MIB, 100 * MIB, None) == 1800 * MIB
    assert free_within(1800 * MIB, None, 1500 * MIB) == 1800 * MIB


WORDS = {
    "fits": "4 tensors, together 1 GiB, were on the card at the same time; now freed.",
    "over_budget": "Tensor 5 asked for 256 MiB when 1 GiB was allocated. The budget allows 1.17 "
    "GiB; 634 MiB of the card was still free.",
    "card_full": "when 1 GiB was allocated. 634 MiB of 1.95 GiB was free, and 8 MiB was reserved "
    "in pieces that are too small.",
    "fragmented": "176 MiB was free within the budget, but the largest tensor that would fit is 90 "
    "MiB.",
    "spilled": "needed more memory than the card had free",
    "taken_by_others": "Other processes have taken 500 MiB since the start.",
    "leak": "Each of 7 steps should have given back its memory",
    "stopped": "1 tensor of 1 GiB was on the card; now freed.",
}


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_its_words(outcome: str):
    finished = oom_finished(
        outcome, steps=14, unallocated_bytes=8 * MIB, largest_block_bytes=90 * MIB,
        free_total_bytes=642 * MIB, others_grew_bytes=500 * MIB, limit_bytes=1200 * MIB,
        tensors=1 if outcome == "stopped" else 4,
    )  # fmt: skip
    notice = outcome_notice(finished)
    assert WORDS[outcome] in notice.detail.replace("\u202f", " ")
    assert notice.next_step.endswith(".")
