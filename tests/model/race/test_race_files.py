from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.race import race_files
from gpu_studio.model.race.race_files import RaceFiles
from tests.hostile_pictures import HOSTILE, png_bomb

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.race.picture_file import Photo
    from gpu_studio.model.studio import Studio


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


def test_a_window_that_closes_ends_what_it_opens(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    (tmp_path / "a.jpg").write_bytes(HOSTILE["passes.jpg"]())
    files = RaceFiles(studio, studio)
    said: list[str] = []
    files.notified.connect(lambda notice: said.append(notice.sentence))
    files.open_file(tmp_path / "a.jpg")
    qtbot.waitUntil(lambda: said == ["Opening a.jpg…"])
    begin_s = time.monotonic()
    files.close()
    assert time.monotonic() - begin_s < 3, "it would take five seconds"
    assert not files.is_reading
