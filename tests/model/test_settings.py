import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.model.settings import Choices, Settings
from gpu_studio.model.start_mark import StartMark


def test_a_change_is_kept_and_reported(tmp_path, qtbot):
    path = tmp_path / "settings.json"
    settings = Settings(path)
    with qtbot.waitSignal(settings.choices_changed) as result:
        settings.change(theme="dark", budget_s=5.0)
    assert result.args[0].theme == "dark"
    assert Settings(path).choices == settings.choices


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\x00\xff", "[" * 50000, '{"theme": 1e999999}', " " * 2_000_000]
)
def test_a_broken_file_is_set_aside_and_reported(tmp_path, text):
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="latin-1")
    settings = Settings(path)
    assert settings.choices == Choices()
    [aside] = tmp_path.iterdir()
    assert aside.name.startswith("settings.broken-")
    assert aside.read_text(encoding="latin-1") == text
    assert aside.name in settings.trouble
    settings.change(theme="dark")
    assert (Settings(path).choices.theme, Settings(path).trouble) == ("dark", "")
    path.write_text(text, encoding="latin-1")  # while the window is open
    settings.change(tab="Memory")
    assert Settings(path).choices == settings.choices
    assert len(list(tmp_path.iterdir())) == 3, "each of them is set aside"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have no place in a folder")
@pytest.mark.parametrize(
    "make", [os.mkdir, lambda path: os.mkfifo(path), lambda path: os.symlink("/dev/zero", path)]
)
def test_what_is_no_file_never_holds_the_start(tmp_path, make):
    path = tmp_path / "settings.json"
    make(path)
    settings = Settings(path)
    assert "not an ordinary file" in settings.trouble
    settings.change(theme="dark")
    assert Settings(path).choices.theme == "dark"
    assert path.is_file()


def test_two_windows_keep_each_others_changes(tmp_path):
    path = tmp_path / "settings.json"
    first, second = Settings(path), Settings(path)
    first.change(theme="dark")
    second.change(tab="Memory")
    saved = Settings(path).choices
    assert (saved.theme, saved.tab) == ("dark", "Memory")
    assert second.choices.theme == "system"  # this window stays as it is


def test_what_a_newer_program_keeps_stays(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text('{"font": "large", "theme": "light"}', encoding="utf-8")
    Settings(path).change(theme="dark")
    assert json.loads(path.read_text(encoding="utf-8")) == {"font": "large", "theme": "dark"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' folders of a user are the user's own")
def test_only_the_user_may_read_the_settings(tmp_path):
    path = tmp_path / "folder" / "settings.json"
    Settings(path).change(theme="dark")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_fresh_start_keeps_the_old_settings_aside(tmp_path, qtbot):
    path = tmp_path / "settings.json"
    settings = Settings(path)
    settings.change(theme="dark")
    with qtbot.waitSignal(settings.choices_changed) as result:
        assert settings.start_afresh()
    assert result.args[0] == settings.choices == Choices()
    [aside] = tmp_path.iterdir()
    assert aside.name.startswith("settings.before-")
    assert json.loads(aside.read_text(encoding="utf-8"))["theme"] == "dark"
    assert Settings(path).choices == Choices()


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("theme", "pink"), ("theme", 3), ("theme", "dark\n"), ("budget_s", -1),
        ("budget_s", "x"), ("tab", 9), ("sizes", "1" * 1001), ("modes", ["x"] * 17),
        ("dtypes", ["float31"]),
    ],
)  # fmt: skip
def test_one_bad_value_loses_only_itself(tmp_path, field, bad):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"code_drawer": True, field: bad}), encoding="utf-8")
    settings = Settings(path)
    assert getattr(settings.choices, field) == getattr(Choices(), field)
    assert settings.choices.code_drawer
    settings.change(**{field: bad})
    assert settings.choices == Choices(code_drawer=True)


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
