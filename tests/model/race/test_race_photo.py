"""The file in which a photo of yours reaches the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.race.photo_file import Photo, photo_id, read_photo
from gpu_studio.model.race.race_photo import RacePhoto

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio


def photo_of(path: Path) -> Photo:
    """Return a photo in one level of gray: the file's name."""
    return Photo(path.name, np.full((2, 3, 3), int(path.stem), np.uint8))


def opened(qtbot: QtBot, studio: Studio, path: Path) -> RacePhoto:
    photo = RacePhoto(studio, photo_of, studio)
    photo.open_file(path)
    qtbot.waitUntil(lambda: not photo.is_reading)
    return photo


def test_two_windows_keep_their_own_photos(qtbot: QtBot, studio: Studio, tmp_path: Path) -> None:
    studio.data_folder = tmp_path / "data"  # which all windows share
    first = opened(qtbot, studio, tmp_path / "7.png")
    second = opened(qtbot, studio, tmp_path / "9.png")

    for photo, level in ((first, 7), (second, 9)):
        pixels = read_photo(photo.path)
        assert (pixels == level).all()
        assert photo.identity == photo_id(pixels)
    first.close()
    assert not first.path.parent.exists()
    assert second.path.exists()
    second.close()
    assert not second.path.parent.exists()


def test_another_photo_takes_the_place_of_the_first(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    photo = opened(qtbot, studio, tmp_path / "7.png")
    before = photo.identity
    photo.open_file(tmp_path / "9.png")
    qtbot.waitUntil(lambda: not photo.is_reading)

    assert (read_photo(photo.path) == 9).all()
    assert photo.identity != before
    photo.choose(0)
    assert photo.identity == ""
    photo.close()
