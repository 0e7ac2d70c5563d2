"""A photo of yours, on its way to the engine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.photo import Photo
from gpu_studio.model.race.race_photo import RacePhoto
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio


def gray(level: int) -> PackedFrame:
    return PackedFrame.of(np.full((2, 3, 3), level, np.uint8))


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
        return Photo(self._path.name, gray(int(self._path.stem)))


def opened(qtbot: QtBot, studio: Studio, path: Path) -> RacePhoto:
    photo = RacePhoto(studio, studio, FakeOpening)
    photo.open_file(path)
    qtbot.waitUntil(lambda: not photo.is_reading)
    return photo


def test_another_photo_takes_the_place_of_the_first(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    photo = opened(qtbot, studio, tmp_path / "7.png")
    before = photo.identity
    photo.open_file(tmp_path / "9.png")
    qtbot.waitUntil(lambda: not photo.is_reading)

    assert photo.learned == gray(9)
    assert photo.identity == gray(9).identity != before
    photo.choose(0)
    assert photo.identity == ""
    assert photo.learned is None
    photo.close()


def test_a_later_file_wins_and_the_one_before_is_never_heard_of_again(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    photo = RacePhoto(studio, studio, FakeOpening)
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
    photo = RacePhoto(studio, studio, FakeOpening)
    photo.open_file(tmp_path / "wait.png")
    photo.close()

    assert not photo.is_reading
    assert photo.names == ("Mountain lake",)
