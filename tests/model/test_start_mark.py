import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.model.start_mark import StartMark

ROOT = Path(__file__).resolve().parents[2]
# Takes its mark, says so, and ends when it is told how.
_START = """
import os, sys
from pathlib import Path
from gpu_studio.model.start_mark import StartMark
mark = StartMark(Path(sys.argv[1]))
print(mark.set(), flush=True)
if sys.stdin.readline() == "well\\n":
    mark.clear()
os._exit(0)
"""


class Start:
    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.saw_bad_end = self._process.stdout.readline().strip() == "True"

    def end(self, how: str) -> None:
        self._process.communicate(f"{how}\n")


@pytest.fixture
def mark(tmp_path: Path):
    mark = StartMark(tmp_path)
    yield mark
    mark.clear()


def test_after_a_good_end_nothing_is_left(tmp_path: Path, mark: StartMark):
    start = Start(tmp_path)
    assert not start.saw_bad_end
    start.end("well")
    assert list(tmp_path.iterdir()) == []
    assert not mark.set()


def test_a_bad_end_is_reported_once(tmp_path: Path, mark: StartMark):
    Start(tmp_path).end("badly")
    assert len(list(tmp_path.iterdir())) == 1
    assert mark.set()
    again = Start(tmp_path)
    assert not again.saw_bad_end
    again.end("well")


def test_a_window_that_still_runs_has_not_ended(tmp_path: Path, mark: StartMark):
    start = Start(tmp_path)
    assert not mark.set()
    start.end("well")
    assert len(list(tmp_path.iterdir())) == 1  # this test's own


def test_what_was_open_when_the_pc_was_switched_off_says_nothing(tmp_path: Path, mark: StartMark):
    left = tmp_path / "running-another-1.lock"
    left.write_text("1\ngpu-studio\nhere\n", encoding="utf-8")
    assert not mark.set()
    assert not left.exists()


@pytest.mark.qt_log_ignore("Got unexpected locking error")  # Qt's word for it on Windows
def test_a_folder_that_takes_nothing_stops_nothing(tmp_path: Path):
    mark = StartMark(tmp_path / "absent")
    assert not mark.set()
    mark.clear()
