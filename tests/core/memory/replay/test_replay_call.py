import os
import struct
import sys
from pathlib import Path

import msgspec
import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.replay import replay_call
from gpu_studio.core.memory.replay.replay_call import (
    Answer,
    AnsweredWhatIf,
    AskWhatIf,
    OpenedHistory,
    OpenHistory,
    OpenSegments,
    Question,
    answer,
    ask,
)
from gpu_studio.core.memory.replay.what_if_words import trust_notice
from gpu_studio.core.notice import Tone
from gpu_studio.process.child_call import ChildAnswer, call_child
from tests.fakes.histories import TrainingHistory


def here(_module: str, content: bytes, **_limits: object) -> ChildAnswer:
    try:
        return ChildAnswer(answer(content), 0)
    except ValueError as error:
        return ChildAnswer(str(error).encode(), 1)


def answered(question: Question) -> Answer:
    return ask(question, here)


def opened(path: Path) -> OpenedHistory:
    found = answered(OpenHistory(path=os.fsencode(path)))
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


def test_the_lines_that_hold_most_are_named(history: OpenedHistory) -> None:
    lines = {one.line: one.size_bytes for one in history.facts.at_peak}
    weights, states = lines["train.py:31 in main"], lines["train.py:74 in main"]
    assert states == 2 * weights  # of the optimizer
    assert {"train.py:73 in main", "unet.py:142 in forward"} < lines.keys()
    assert list(lines.values()) == sorted(lines.values(), reverse=True)
    assert sum(lines.values()) <= history.modelled.peak_allocated_bytes


def test_a_history_of_which_the_model_knows_all_needs_no_doubt(history: OpenedHistory) -> None:
    assert history.modelled.peak_reserved_bytes == history.facts.peak_reserved_bytes
    assert not trust_notice(history).sentence

    def with_facts(**facts: object) -> OpenedHistory:
        changed = msgspec.structs.replace(history.facts, **facts)
        return msgspec.structs.replace(history, facts=changed)

    twice = 2 * history.facts.peak_reserved_bytes
    own_pool, more = with_facts(has_private_pool=True), with_facts(peak_reserved_bytes=twice)
    for doubtful, words in ((own_pool, "pool of its own"), (more, "where the recorded program")):
        notice = trust_notice(doubtful)
        assert notice.tone is Tone.AMBER
        assert words in notice.sentence
    assert not trust_notice(with_facts(peak_reserved_bytes=twice, was_full=True)).sentence


def test_a_large_file_may_take_longer(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"\0" * (4 << 20))
    given: list[object] = []

    def noted(*_: object, **limits: object) -> ChildAnswer:
        given.append(limits["longest_s"])
        return ChildAnswer(is_late=True)

    with pytest.raises(StudioError, match="longer than 22 s"):
        ask(OpenSegments(path=os.fsencode(path)), noted)
    assert given == [22.0]


def test_a_card_that_is_too_small_fails_with_its_line(history: OpenedHistory) -> None:
    enough_bytes = history.modelled.peak_reserved_bytes
    for card_bytes, fits in ((enough_bytes, True), (enough_bytes // 2, False)):
        question = AskWhatIf(history=history.history, card_bytes=card_bytes, other_bytes=0, conf="")
        found = answered(question)
        assert isinstance(found, AnsweredWhatIf)
        assert found.found.fits is fits
        assert found.found.enough_bytes == enough_bytes
    assert found.found.failed_at is not None
    assert found.found.failed_s is not None
    assert 0 < found.found.failed_s < 60
    assert ".py:" in found.found.failed_line
    assert found.found.tried_bytes is not None


# These cost memory or time without end: only a child with limits reads them.
COSTLY = {
    "a bytearray of an exbibyte": b"\x80\x05\x96" + struct.pack("<Q", 1 << 60) + b".",
    "a large place in the memory": b"\x80\x02K\x07r\xff\xff\xff\x7f.",
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_child_with_limits_refuses_what_costs_all_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.pickle"
    path.write_bytes(COSTLY[name])
    with pytest.raises(StudioError, match=r"needs more memory|theirs\.pickle"):
        ask(OpenSegments(path=os.fsencode(path)), call_child)


def test_a_file_of_keys_that_collide_ends_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary whose keys all have one hash takes the square of their number."""
    step = sys.hash_info.modulus
    path = tmp_path / "theirs.pickle"
    items = b"".join(
        b"\x8a\x0a" + (number * step).to_bytes(10, "little") + b"N" for number in range(60_000)
    )
    path.write_bytes(b"\x80\x02}(" + items + b"u.")
    soon = msgspec.structs.replace(replay_call._OPENING_LIMITS, longest_s=0.5)
    monkeypatch.setattr(replay_call, "_OPENING_LIMITS", soon)
    with pytest.raises(StudioError, match="takes longer than"):
        ask(OpenSegments(path=os.fsencode(path)), call_child)
