from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.race_messages import MOST_CONTESTANTS, RaceOutcome
from gpu_studio.core.packed_frame import PackedFrame, pack_rows
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.core.race.picture_file import (
    MOST_POINTS,
    DecodedPicture,
    FoundRace,
    RefusedPicture,
    SharedRace,
    decode_shared,
    encode_answer,
    open_picture,
    shared_text,
)
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.side import RaceSide, RaceTrack, frame_of
from gpu_studio.core.race.verdict import judge
from tests.core.race.racing import over
from tests.fakes.run_answers import changed

# Digits as in a real way to the finish line.
_CURVE = tuple(1000 / 3 - 1 / (7 + number) for number in range(1000))


def text_of_many(count: int) -> str:
    """Return a saved race with long ways to the finish line."""
    curves = {"steps": _CURVE, "seconds": _CURVE, "sharpness": _CURVE}
    frames = [
        frame_of(at_s / 300, number * 100, at_s / 40, number / MOST_POINTS)
        for number, at_s in enumerate(_CURVE[:MOST_POINTS])
    ]
    sides = []
    for threads in range(1, count + 1):
        contestant = Contestant(device="cpu", threads=threads)
        run = over(contestant, 0.01 + threads / 3e4, curves=curves)
        sides.append(RaceSide(f"CPU {threads}", run, RaceTrack(frames)))
    race = judge(LEARN, [side.run for side in sides]).finished
    return shared_text(race, sides, "2026-11-22T14:00:00+00:00")


def saved(shared: SharedRace) -> str:
    return msgspec.json.encode(shared).decode()


def test_the_largest_race_can_be_saved_and_opened_again() -> None:
    opened = decode_shared(text_of_many(MOST_CONTESTANTS))
    assert [len(run.points) for run in opened.runs] == [MOST_POINTS] * MOST_CONTESTANTS
    assert not any(run.result.details.curves for run in opened.runs), "the way is in it once"


def test_the_fastest_contestant_is_the_ghost() -> None:
    shared = decode_shared(text_of_many(2))
    ghost = shared.ghost
    assert ghost.label == "CPU 1, saved 2026-11-22"
    assert ghost.end_s == shared.race.contestants[0].seconds
    assert len(ghost.track.frames) == MOST_POINTS
    assert ghost.run.result.recording == "saved 2026-11-22"
    without = (msgspec.structs.replace(run, result=None) for run in shared.runs)
    assert msgspec.structs.replace(shared, runs=tuple(without)).ghost is None


def test_a_picture_of_the_version_before_opens() -> None:
    """It also has what stood on the picture, and names of its measure."""
    old = msgspec.json.decode(text_of_many(2)) | {
        "cpu_name": "A CPU", "card_name": "A card", "torch_version": "2.13.0", "tone": "amber",
        "doubts": ["Hot"], "measure_title": "sharpness", "unit": "dB",
    }  # fmt: skip
    for run in old["runs"]:
        run["result"]["race"] |= {"own_kernel": False, "seeds": [[0.5, 0.5]]}
    assert decode_shared(msgspec.json.encode(old).decode()).ghost is not None


def two(**changes: Any) -> SharedRace:
    shared = decode_shared(text_of_many(2))
    first, second = shared.runs
    result = changed(first.result, **changes)
    return msgspec.structs.replace(
        shared, runs=(msgspec.structs.replace(first, result=result), second)
    )


def faster(shared: SharedRace, **changes: Any) -> SharedRace:
    first, second = shared.race.contestants
    contestants = (msgspec.structs.replace(first, **changes), second)
    race = msgspec.structs.replace(shared.race, contestants=contestants)
    return msgspec.structs.replace(shared, race=race)


OUTCOME = RaceOutcome(reached=True, steps=200, seconds=0.1, measure=30.0, progress=1.0)
HALFWAY = msgspec.structs.replace(OUTCOME, progress=0.5)


@pytest.mark.parametrize(
    ("shared", "reason"),
    [
        (two(outcome=OUTCOME), "contradict the steps and their median"),
        (two(timed_s=0.1), "contradict its timed seconds"),
        (two(outcome=HALFWAY), "says that it finished, and that it did not"),
        (faster(two(), seconds=0.1), "contradict a contestant's result"),
        (faster(two(), steps=2), "contradict a contestant's result"),
        (faster(two(), step_median_s=1e-6), "contradicts a contestant's result"),
        (msgspec.structs.replace(two(), schema=2), "newer version"),
        (msgspec.structs.replace(two(), runs=()), "damaged"),
    ],
    ids=["too fast for its steps", "timed otherwise", "halfway", "seconds", "steps", "a step",
         "newer", "no runs"],
)  # fmt: skip
def test_a_race_that_contradicts_itself_is_refused(shared: SharedRace, reason: str) -> None:
    with pytest.raises(StudioError, match=reason) as caught:
        decode_shared(saved(shared))
    assert caught.value.kind is FailureKind.FILE_REFUSED


def test_a_ghost_whose_way_ends_before_its_race_is_refused() -> None:
    shared = two()
    first, second = shared.runs
    early = tuple(msgspec.structs.replace(p, elapsed_s=p.elapsed_s / 9) for p in first.points)
    for points in (early, first.points[::-1]):
        changed = msgspec.structs.replace(first, points=points)
        with pytest.raises(StudioError, match="the way to the finish line contradicts"):
            decode_shared(saved(msgspec.structs.replace(shared, runs=(changed, second))))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 1}', "x" * (1 << 21), "[" * 100_000], ids=len
)
def test_a_text_that_is_no_race_is_refused(text: str) -> None:
    with pytest.raises(StudioError, match=r"cannot be opened: it is"):
        decode_shared(text)


class Call(NamedTuple):
    content: bytes

    def run(self, _path: bytes, **_limits: object) -> tuple[bytes, int | None, bool]:
        return self.content, 0, False


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff" * 9, b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000,
        encode_answer(DecodedPicture(PackedFrame(pack_rows(bytes(11)), 2, 2))),
        encode_answer(DecodedPicture(PackedFrame(pack_rows(bytes(13)), 2, 2))),
        msgspec.msgpack.encode({"type": "DecodedPicture", "picture": (b"", 2**40, 1)}),
        msgspec.msgpack.encode({"type": "RefusedPicture", "reason": "x" * 201}),
        msgspec.msgpack.encode({"type": "Other"}),
        encode_answer(DecodedPicture(PackedFrame(bytes(8 << 20), 512, 512))),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_a_decoder_says_is_as_untrusted_as_a_file(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(StudioError, match="it is damaged"):
        open_picture(tmp_path / "a.png", Call(content))


def test_a_decoders_words_reach_the_window_without_control_characters(tmp_path: Path) -> None:
    content = encode_answer(RefusedPicture("it\x1b[31m\u202e is\n red"))
    with pytest.raises(StudioError, match=r"learned: it\[31m is red\.$"):
        open_picture(tmp_path / "a.png", Call(content))


def test_a_race_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudioError, match="it is too large"):
        open_picture(tmp_path / "a.png", Call(encode_answer(FoundRace("x" * ((1 << 20) + 1)))))
