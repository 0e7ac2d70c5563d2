"""The memory of another batch size, from the peaks of a few."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.replay.batch_line import BatchPeak, batch_line, batch_sentence

GIB = 1 << 30


def peaks(*pairs: tuple[int, float]) -> list[BatchPeak]:
    return [BatchPeak(batch, round(size * GIB)) for batch, size in pairs]


def test_a_line_predicts_another_batch() -> None:
    line = batch_line(peaks((16, 7.1), (8, 4.0), (12, 5.6)))
    words = batch_sentence(line, 24)
    assert words.replace("\u202f", " ") == "Batch 24 would need 10.2 GiB (from 8, 12, 16; ±0.1)"
    assert line.needed_bytes(line.largest_batch(8 * GIB)) < 8 * GIB
    assert line.needed_bytes(line.largest_batch(8 * GIB) + 1) > 7.9 * GIB


def test_two_histories_say_that_their_error_is_unknown() -> None:
    assert "unknown" in batch_sentence(batch_line(peaks((8, 4), (16, 7))), 12)


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        (((8, 4), (12, 7), (16, 7.2)), "not on a line"),
        (((8, 4), (8, 4.1)), "two different"),
        (((8, 4), (16, 4)), "does not grow"),
        (((8, 4),), "two different"),
        (((0, 4), (8, 5)), "A batch has"),
    ],
)
def test_what_is_no_line_is_refused(pairs: tuple[tuple[int, float], ...], word: str) -> None:
    with pytest.raises(StudioError, match=word):
        batch_line(peaks(*pairs))


def test_a_history_that_failed_shows_no_need() -> None:
    with pytest.raises(StudioError, match="batch 16 was out of memory"):
        batch_line([*peaks((8, 4)), BatchPeak(16, 6 * GIB, ooms=1)])


def test_a_batch_far_away_is_not_predicted() -> None:
    with pytest.raises(StudioError, match="too far"):
        batch_sentence(batch_line(peaks((8, 4), (16, 7))), 65)
