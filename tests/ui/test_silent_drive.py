import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QComboBox

from gpu_studio.core import user_file
from gpu_studio.model.benchmark.history_model import HistoryModel
from gpu_studio.model.memory.segment_model import SegmentModel
from gpu_studio.model.pages import BENCHMARK, CHECK, RACE, SEGMENTS
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.main_window import MainWindow
from tests.driving.window import drop, find, sees, text, wait_until
from tests.patience import PATIENCE_S, limit


class SilentDrive:
    """Holds whoever opens a file with ``silent`` in its name until `answer`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._answers = threading.Event()
        self._open = user_file.open_user_file

    def open(self, path: Path) -> BinaryIO:
        if "silent" in path.name:
            self.asked.append(path.name)
            self._answers.wait(PATIENCE_S)
        return self._open(path)

    def answer(self) -> None:
        self._answers.set()


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Iterator[SilentDrive]:
    drive = SilentDrive()
    monkeypatch.setattr(user_file, "open_user_file", drive.open)
    yield drive
    drive.answer()


def test_a_later_file_takes_the_place_of_one_that_does_not_come(
    window: MainWindow, drive: SilentDrive, tmp_path: Path
) -> None:
    for ending in ("png", "jsonl"):
        assert drop(window, tmp_path / f"silent.{ending}")
        wait_until(lambda ending=ending: f"silent.{ending}" in drive.asked)
    image = QImage(20, 10, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    image.save(str(tmp_path / "me.png"))
    assert drop(window, tmp_path / "me.png")
    wait_until(lambda: sees(window, "race.photo"))
    wait_until(lambda: find(window, "race.photo", QComboBox).currentText() == "me.png")


def test_a_drive_that_does_not_answer_is_reported(
    window: MainWindow, drive: SilentDrive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, disk_silence_s=0.1)
    assert drop(window, tmp_path / "silent.png")
    wait_until(lambda: sees(window, "banner.sentence"))
    assert text(window, "banner.sentence") == (
        "silent.png cannot be opened: its drive does not answer."
    )


def test_the_window_closes_although_files_do_not_come(
    window: MainWindow, drive: SilentDrive, ready_studio: Studio, tmp_path: Path
) -> None:
    """That no thread is left is looked at after every test."""
    for page in (BENCHMARK, SEGMENTS, CHECK, RACE):
        ready_studio.go_to(page)
    names = [f"silent-{number}" for number in range(4)]
    drop(window, tmp_path / f"{names[0]}.png")
    window.findChild(HistoryModel).open_files([tmp_path / names[1]])
    window.findChild(SegmentModel).open_snapshot(tmp_path / names[2])
    window.findChild(CheckTab).check.open_file(tmp_path / names[3])
    wait_until(lambda: len(drive.asked) == len(names))
    window.close()
    ready_studio.close()
