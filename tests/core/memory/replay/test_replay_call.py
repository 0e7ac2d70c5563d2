"""The work of the child that replays a history, over an invented training."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from gpu_studio.core.memory.replay.replay_call import (
    AnsweredSmallest,
    AnsweredWhatIf,
    AskSettings,
    AskSmallest,
    AskWhatIf,
    NoHistory,
    OpenedHistory,
    OpenHistory,
    answer,
    decode_answer,
)
from gpu_studio.core.memory.replay.timeline import Category, MarkKind
from tests.fakes.histories import MIB, TrainingHistory

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.memory.replay.replay_call import Answer, Question


def ask(question: Question) -> Answer:
    return decode_answer(answer(msgspec.msgpack.encode(question)))


def opened(path: Path) -> OpenedHistory:
    found = ask(OpenHistory(path=os.fsencode(path)))
    assert isinstance(found, OpenedHistory)
    return found


@pytest.fixture
def history(tmp_path: Path) -> OpenedHistory:
    training = TrainingHistory(batch=4)
    training.run(1, layers=4)
    training.empty_cache()
    training.run(2, layers=4)
    training.write(tmp_path / "training")
    return opened(tmp_path / "training")


def test_the_layers_sum_up_to_what_was_allocated(history: OpenedHistory) -> None:
    timeline = history.timeline
    allocated = np.frombuffer(timeline.allocated)
    assert allocated.max() == history.peak_allocated_bytes
    top = np.frombuffer(timeline.layers[-1].tops, np.float32)
    assert np.allclose(top, allocated, atol=512)
    assert sum(layer.peak_bytes for layer in timeline.layers) == history.peak_allocated_bytes
    assert np.frombuffer(timeline.reserved).max() == history.peak_reserved_bytes
    assert [mark.kind for mark in timeline.marks] == [MarkKind.EMPTY_CACHE]


def test_stacks_and_lifetimes_tell_what_memory_is_for(history: OpenedHistory) -> None:
    found = {(layer.category, layer.line.partition(" ")[0]) for layer in history.timeline.layers}
    assert {
        (Category.OPTIMIZER_STATE, "train.py:74"),
        (Category.PARAMETER, "train.py:31"),
        (Category.GRADIENT, "train.py:73"),
        (Category.ACTIVATION, "unet.py:142"),
    } < found


def test_a_card_that_is_too_small_fails_with_its_line(history: OpenedHistory) -> None:
    least = ask(AskSmallest(replayed=history.replayed, other_bytes=0, conf=""))
    assert isinstance(least, AnsweredSmallest)
    small_bytes = least.card_bytes - 200 * MIB
    for card_bytes, fits in ((least.card_bytes, True), (small_bytes, False)):
        found = ask(
            AskWhatIf(replayed=history.replayed, card_bytes=card_bytes, other_bytes=0, conf="")
        )
        assert isinstance(found, AnsweredWhatIf)
        assert found.found.fits is fits
        assert np.frombuffer(found.reserved).max() == found.found.peak_reserved_bytes
    assert found.found.failed_at is not None
    assert ".py:" in history.timeline.line_of(found.found.failed_at)
    assert found.found.tried_bytes is not None
    best = ask(AskSettings(replayed=history.replayed, other_bytes=0))
    assert isinstance(best, AnsweredSmallest)
    assert best.card_bytes <= least.card_bytes


def test_a_snapshot_of_one_moment_has_no_history(tmp_path: Path) -> None:
    training = TrainingHistory()
    path = tmp_path / "moment"
    training.write(path)
    whole = pickle.loads(path.read_bytes()) | {"device_traces": [[]]}
    path.write_bytes(pickle.dumps(whole))
    assert ask(OpenHistory(path=os.fsencode(path))) == NoHistory()


class Hostile:
    def __reduce__(self):
        return (print, ("run",))


@pytest.mark.parametrize("content", [pickle.dumps(Hostile()), b"", b"no pickle"])
def test_anything_else_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "theirs.pickle"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"theirs\.pickle"):
        answer(msgspec.msgpack.encode(OpenHistory(path=os.fsencode(path))))
    assert capsys.readouterr().out == ""
