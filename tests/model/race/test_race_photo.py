"""The file in which a photo of yours reaches the engine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.race.photo_file import Photo, photo_id, read_photo
from gpu_studio.model.race.race_photo import RacePhoto
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio


class FakeOpening:
    """Opens a photo in one level of gray: the file's name; ``wait.png`` waits to be cancelled."""

    def __init__(self, path: Path) -> None:
        self._path, self._is_cancelled = path, threading.Event()

    def cancel(self) -> None:
        self._is_cancelled.set()

    def run(self) -> Photo:
        if self._path.stem == "wait":
            assert self._is_cancelled.wait(PATIENCE_S)
            raise StudioError(FailureKind.FILE_REFUSED, "It was cancelled.")
        return Photo(self._path.name, np.full((2, 3, 3), int(self._path.stem), np.uint8))


def opened(qtbot: QtBot, studio: Studio, path: Path) -> RacePhoto:
    photo = RacePhoto(studio, FakeOpening, studio)
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


def test_a_later_file_wins_and_the_one_before_is_never_heard_of_again(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    photo = RacePhoto(studio, FakeOpening, studio)
    sentences: list[str] = []
    photo.notified.connect(lambda notice: sentences.append(notice.sentence))
    for name in ("wait", "wait", "7", "9"):
        photo.open_file(tmp_path / f"{name}.png")
        assert photo.opening_name == f"{name}.png"
    qtbot.waitUntil(lambda: not photo.is_reading)

    assert photo.names[1:] == ("9.png",)
    assert not any(sentences)
    assert not photo.opening_name
    photo.close()


def test_a_window_that_closes_ends_what_it_opens(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    photo = RacePhoto(studio, FakeOpening, studio)
    photo.open_file(tmp_path / "wait.png")
    photo.close()

    assert not photo.is_reading
    assert photo.names == ("Mountain lake",)
