import os
import sys
from pathlib import Path

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.race import picture_file
from gpu_studio.core.race.picture_file import DECODER, MEMORY_BYTES, Photo, open_picture
from gpu_studio.process.child_call import ChildCall
from tests.hostile_pictures import HOSTILE, png_bomb, svg_naming

_CALLED = "tests.process.called"


def opened(path: Path, decoder: str = DECODER) -> object:
    return open_picture(path, ChildCall(decoder, memory_bytes=MEMORY_BYTES))


def refusal(path: Path, decoder: str = DECODER) -> str:
    with pytest.raises(StudioError) as refused:
        opened(path, decoder)
    return str(refused.value)


def test_a_picture_is_decoded_in_a_child(tmp_path: Path) -> None:
    (tmp_path / "a picture, ö.png").write_bytes(png_bomb(1024, 512, 8, 2))

    photo = opened(tmp_path / "a picture, ö.png")

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
    monkeypatch.setattr(picture_file, "_LONGEST_S", 0.1)
    (tmp_path / "a.jpg").write_bytes(HOSTILE["passes.jpg"]())

    assert "takes longer than" in refusal(tmp_path / "a.jpg")


@pytest.mark.skipif(sys.platform == "darwin", reason="watched there while it works")
def test_a_picture_that_takes_all_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.webp").write_bytes(HOSTILE["flat.webp"]())

    assert "512 MiB of memory" in refusal(tmp_path / "a.webp")


@pytest.mark.parametrize("does", ["garbage", "no answer"])
def test_a_decoder_that_dies_or_talks_nonsense_is_a_sentence(does: str, tmp_path: Path) -> None:
    module = "tests.process.called" if does == "garbage" else "tests.no_such_module"
    assert "a.png cannot be learned: it is damaged" in refusal(tmp_path / "a.png", module)
