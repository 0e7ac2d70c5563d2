"""A photo of yours, on its way to the engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpu_studio.model.race.race_photo import RacePhoto
from tests.hostile_pictures import HOSTILE, png_bomb

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio


def test_the_last_of_several_files_is_learned(qtbot: QtBot, studio: Studio, tmp_path: Path) -> None:
    photo = RacePhoto(studio, studio)
    sentences: list[str] = []
    photo.notified.connect(lambda notice: sentences.append(notice.sentence))
    (tmp_path / "bad.png").write_text("no picture")
    (tmp_path / "me.png").write_bytes(png_bomb(40, 20, 8, 2))
    for name in ("bad", "bad", "me"):
        photo.open_file(tmp_path / f"{name}.png")
    qtbot.waitUntil(lambda: not photo.is_reading)

    assert photo.names[1:] == ("me.png",)
    assert photo.learned.identity == photo.identity != ""
    assert not any("cannot be learned" in one for one in sentences)
    photo.choose(0)
    assert (photo.identity, photo.learned) == ("", None)
    photo.close()


def test_a_window_that_closes_ends_what_it_opens(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    (tmp_path / "a.jpg").write_bytes(HOSTILE["passes.jpg"]())
    photo = RacePhoto(studio, studio)
    said: list[str] = []
    photo.notified.connect(lambda notice: said.append(notice.sentence))
    photo.open_file(tmp_path / "a.jpg")
    qtbot.waitUntil(lambda: said == ["Opening a.jpg…"])
    begin_s = time.monotonic()
    photo.close()
    assert time.monotonic() - begin_s < 3, "it would take five seconds"
    assert not photo.is_reading
    assert photo.names == ("Mountain lake",)
