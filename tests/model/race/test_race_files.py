import os
import sys
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.failure import StudioError
from gpu_studio.core.race import picture_file
from gpu_studio.core.race.picture_file import DECODER, MEMORY_BYTES, Photo, open_picture
from gpu_studio.model.race import race_files
from gpu_studio.model.race.race_files import RaceFiles
from gpu_studio.model.studio import Studio
from gpu_studio.process.child_call import ChildCall
from tests.hostile_pictures import HOSTILE, png_bomb, svg_naming


@pytest.fixture(autouse=True)
def _painter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_files, "PAINTER", "tests.process.called")


def test_a_window_that_closes_ends_its_painters_and_names_what_it_did_not_save(
    studio: Studio, tmp_path: Path
) -> None:
    saving = RaceFiles(studio, studio)
    for name in ("first", "second"):
        saving.save(b"hang", tmp_path / f"{name}.webp")
    begin_s = time.monotonic()
    saving.close()
    assert time.monotonic() - begin_s < 4
    assert not list(tmp_path.glob("*.webp"))
    again = RaceFiles(studio, studio)
    notice = again.take_unsaved().sentence
    assert all(f"{name}.webp" in notice for name in ("first", "second"))
    assert not again.take_unsaved().sentence


def test_each_file_is_written_or_named_with_the_reason(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    saving = RaceFiles(studio, studio)
    said: list[str] = []
    saving.notified.connect(lambda notice: said.append(notice.sentence))
    saving.save(b"refuse", tmp_path / "bad.webp")
    saving.save(b"good", tmp_path / "missing" / "good.webp")
    saving.save(b"good", tmp_path / "good.webp")
    qtbot.waitUntil(lambda: len(said) == 3)
    saving.close()
    assert "could not be painted: it is no message" in said[0]
    assert "could not be written" in said[1]
    assert said[2] == f"Saved as {tmp_path / 'good.webp'}"
    assert (tmp_path / "good.webp").read_bytes() == b"doog"
    assert not saving.take_unsaved().sentence, "each was said"


def test_the_last_of_several_files_is_opened(qtbot: QtBot, studio: Studio, tmp_path: Path) -> None:
    files = RaceFiles(studio, studio)
    sentences: list[str] = []
    found: list[Photo] = []
    files.notified.connect(lambda notice: sentences.append(notice.sentence))
    files.opened.connect(found.append)
    (tmp_path / "bad.png").write_text("no picture")
    (tmp_path / "me.png").write_bytes(png_bomb(40, 20, 8, 2))
    for name in ("bad", "bad", "me"):
        files.open_file(tmp_path / f"{name}.png")
    qtbot.waitUntil(lambda: not files.is_reading)
    assert [one.name for one in found] == ["me.png"]
    assert not any("cannot be learned" in one for one in sentences)
    files.close()


def opened(path: Path, decoder: str = DECODER) -> object:
    return open_picture(path, ChildCall(decoder, memory_bytes=MEMORY_BYTES))


def refusal(path: Path, decoder: str = DECODER) -> str:
    with pytest.raises(StudioError) as refused:
        opened(path, decoder)
    return str(refused.value)


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
