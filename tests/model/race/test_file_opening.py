"""Files that attack the decoder's process: each ends as a sentence, and none costs the window."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.packed_frame import PackedFrame, pack_rows
from gpu_studio.core.race.photo import (
    DecodedPicture,
    FoundRace,
    Photo,
    RefusedPicture,
    encode_answer,
    opened_picture,
)
from gpu_studio.model.race import race_photo
from gpu_studio.model.race.race_photo import FileOpening
from tests.hostile_pictures import HOSTILE, png_bomb, svg_naming

if TYPE_CHECKING:
    from pathlib import Path

_CALLED = "tests.process.called"


def refusal(path: Path) -> str:
    with pytest.raises(StudioError) as refused:
        FileOpening(path).run()
    return str(refused.value)


def test_a_picture_is_decoded_in_a_child(tmp_path: Path) -> None:
    (tmp_path / "a picture, ö.png").write_bytes(png_bomb(1024, 512, 8, 2))

    photo = FileOpening(tmp_path / "a picture, ö.png").run()

    assert isinstance(photo, Photo)
    assert (photo.name, photo.picture.pixels.shape) == ("a picture, ö.png", (256, 512, 3))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_and_an_svg_that_names_one_are_refused_and_wait_for_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "a.png").write_bytes(svg_naming(tmp_path / "pipe.png"))

    assert "not an ordinary file" in refusal(tmp_path / "pipe.png")
    assert "not a PNG" in refusal(tmp_path / "a.png")


def test_a_picture_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_photo, "LONGEST_S", 0.1)
    (tmp_path / "a.jpg").write_bytes(HOSTILE["passes.jpg"]())

    assert "takes longer than" in refusal(tmp_path / "a.jpg")


@pytest.mark.skipif(sys.platform == "darwin", reason="watched there while it works")
def test_a_picture_that_takes_all_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.webp").write_bytes(HOSTILE["flat.webp"]())

    assert "512 MiB of memory" in refusal(tmp_path / "a.webp")


@pytest.mark.parametrize("does", ["die", "any garbage", "refuse"])
def test_a_decoder_that_dies_or_talks_nonsense_is_a_sentence(
    does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_photo, "DECODER", _CALLED)
    monkeypatch.chdir(tmp_path)

    assert f"{does} cannot be learned: it is damaged" in refusal(type(tmp_path)(does))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff" * 9, b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000,
        encode_answer(DecodedPicture(PackedFrame(pack_rows(bytes(11)), 2, 2))),
        encode_answer(DecodedPicture(PackedFrame(pack_rows(bytes(13)), 2, 2))),
        msgspec.msgpack.encode({"type": "DecodedPicture", "picture": (b"", 0, 1)}),
        msgspec.msgpack.encode({"type": "DecodedPicture", "picture": (b"", 2**40, 1)}),
        msgspec.msgpack.encode({"type": "RefusedPicture", "reason": "x" * 201}),
        msgspec.msgpack.encode({"type": "Other"}),
        encode_answer(DecodedPicture(PackedFrame(bytes(8 << 20), 512, 512))),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_a_decoder_says_is_as_untrusted_as_a_file(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(StudioError, match="it is damaged"):
        opened_picture(tmp_path / "a.png", content, is_answered=True, is_late=False)


def test_a_decoders_words_reach_the_window_without_control_characters(tmp_path: Path) -> None:
    content = encode_answer(RefusedPicture("it\x1b[31m\u202e is\n red"))
    with pytest.raises(StudioError, match=r"learned: it\[31m is red\.$"):
        opened_picture(tmp_path / "a.png", content, is_answered=True, is_late=False)


def test_a_race_that_is_too_large_is_refused(tmp_path: Path) -> None:
    content = encode_answer(FoundRace("x" * ((1 << 20) + 1)))
    with pytest.raises(StudioError, match="it is too large"):
        opened_picture(tmp_path / "a.png", content, is_answered=True, is_late=False)
