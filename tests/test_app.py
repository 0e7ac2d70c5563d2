import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Signal

from gpu_studio import app
from gpu_studio.app import _keep_small, remove_killed_windows_folders
from gpu_studio.core.check.check_folder import FOLDER_NAME, CheckFolder
from tests.own_home import own_home
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent

_A_CALL_THAT_DOES_NOT_END = """
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from gpu_studio import app
from gpu_studio.core import limits
from gpu_studio.ui.main_window import MainWindow

class Deaf:
    def send(self, request):
        pass

    def events(self):
        QTimer.singleShot(0, QApplication.instance(), QApplication.closeAllWindows)
        time.sleep(3600)
        yield
    def stop(self): pass
    abandon = close = stop

limits.current = limits.current._replace(thread_end_ms=50)
build_window = app.build_window
app.build_window = lambda **options: build_window(
    engine_factory=lambda environment: Deaf(), **options
)
sys.exit(app.main())
"""


def test_a_call_that_cannot_be_ended_ends_with_the_program(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", _A_CALL_THAT_DOES_NOT_END],
        cwd=ROOT,
        env={**os.environ, **own_home(tmp_path), "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Destroyed while" not in ended.stderr


# A start that a signal ends in the middle, or that ends well; it says what the banner said.
_A_START = """
import os, sys
from PySide6.QtCore import QTimer
from gpu_studio import app
from gpu_studio.ui.main_window import MainWindow
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines

def end():
    print(window.banner.sentence, flush=True)
    if sys.argv[1] == "badly":
        os._exit(3)
    if sys.argv[1] == "well":
        window.close()

def tidy():
    print("tidied", flush=True)
    window.close()

def build(**options):
    global window
    window = build_window(
        engine_factory=Engines(), sensor_source=SteadySensors(cpu_only()), **options
    )
    QTimer.singleShot(0, window, end)
    return window

build_window, app.build_window = app.build_window, build
if sys.argv[1] == "tidying":
    app._TIDY_EVERY_MS, app.remove_killed_windows_folders = 10, tidy
sys.exit(app.main())
"""


def _start(home: Path, how: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _A_START, how],
        cwd=ROOT,
        env={**os.environ, **own_home(home), "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == (3 if how == "badly" else 0), done.stderr
    return done.stdout.strip()


def test_the_start_after_a_bad_end_says_so_and_removes_what_killed_ones_left_now_and_then(tmp_path):
    assert _start(tmp_path, "badly") == ""
    banner, *tidied = _start(tmp_path, "tidying").splitlines()
    assert "did not close" in banner
    assert "tidied" in tidied


# A start that a signal ends in the middle of a check.
_A_CHECK = """
import signal, sys
from pathlib import Path
from PySide6.QtCore import QTimer
from gpu_studio import app
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.ui.check.check_tab import CheckTab
from tests.fakes.check_answers import check_round
from tests.fakes.descriptions import described
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines

engines = Engines({
    DescribeEngine: [described()],
    RunCheck: lambda _engine, request: check_round(request, pause_in="memory"),
})

def go_on():
    tab = window.findChild(CheckTab)
    if tab is None:
        return
    tab.check.start()
    track = tab.check.run and tab.check.run.present
    if track and track.name == "memory" and track.fraction and not tab.check._files.is_busy:
        turn.stop()
        signal.raise_signal(getattr(signal, sys.argv[1]))

def build(**options):
    global turn, window
    options["data_folder"] = Path(sys.argv[2])
    window = build_window(
        engine_factory=engines, sensor_source=SteadySensors(cpu_only()), **options
    )
    turn = QTimer(window, interval=10)
    turn.timeout.connect(go_on)
    turn.start()
    return window

build_window, app.build_window = app.build_window, build
sys.exit(app.main())
"""


@pytest.mark.parametrize(
    ("how", "is_cut_off"),
    [("SIGINT", False), ("SIGTERM", True)],
)
def test_only_a_check_that_you_did_not_end_yourself_was_cut_off(tmp_path, how, is_cut_off):
    ended = subprocess.run(
        [sys.executable, "-c", _A_CHECK, how, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **own_home(tmp_path), "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    folder = CheckFolder(tmp_path / FOLDER_NAME)
    assert (folder.conclude_cut_off() is not None) == is_cut_off
    (record,) = folder.records()
    assert record.device.address == "cpu"
    assert record.is_stopped == (not is_cut_off)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows' folders of a user are the user's own")
def test_log_and_settings_are_for_the_user_alone_and_a_pipe_holds_no_start(tmp_path):
    folder = tmp_path / ".config" / "gpu-studio"
    if sys.platform == "darwin":
        folder = tmp_path / "Library" / "Application Support" / "gpu-studio"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "settings.json")
    assert "Your settings could not be used" in _start(tmp_path, "well")
    listed = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in listed} >= {"settings.json", "gpu-studio.log", "crash.log"}
    assert {path.stat().st_mode & 0o777 for path in listed} == {0o600}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems always have fonts")
def test_without_any_font_a_sentence_stands_in_for_a_window_of_boxes(tmp_path):
    configuration = tmp_path / "fonts.conf"
    configuration.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
        f"<dir>{tmp_path}</dir><cachedir>{tmp_path}</cachedir></fontconfig>"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "gpu_studio"],
        cwd=ROOT,
        env={
            **os.environ, **own_home(tmp_path),
            "QT_QPA_PLATFORM": "offscreen", "FONTCONFIG_FILE": str(configuration),
        },
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "fonts-dejavu-core" in ended.stderr
    assert "Traceback" not in ended.stderr


_LOADED = """
import gc, sys
from gpu_studio.__main__ import load_window
collected = [generation["collections"] for generation in gc.get_stats()]
load_window()
sys.exit(gc.isenabled() or collected != [now["collections"] for now in gc.get_stats()])
"""


def test_no_garbage_is_collected_before_the_first_paint():
    subprocess.run([sys.executable, "-c", _LOADED], timeout=PATIENCE_S, check=True)


class Window(QObject):
    painted, completed = Signal(), Signal()


class Knot:
    """Garbage that only the cycle collector finds; notes the thread that destroyed it."""

    def __init__(self, destroyed_in: list[int]) -> None:
        self._me, self._destroyed_in = self, destroyed_in

    def __del__(self) -> None:
        self._destroyed_in.append(threading.get_ident())


def test_garbage_is_destroyed_in_the_windows_thread(qtbot, monkeypatch):
    monkeypatch.setattr(app, "_COLLECT_EVERY_MS", 10)
    gc.enable()
    window = Window()
    app.collect_in_its_thread(window)
    window.painted.emit()
    destroyed_in: list[int] = []
    Knot(destroyed_in)
    is_over = threading.Event()

    def allocate() -> None:
        collected: list[list[int]] = []
        while not is_over.is_set():
            collected.append([])
            if len(collected) > 100_000:
                collected.clear()

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        qtbot.waitUntil(lambda: bool(destroyed_in))
    finally:
        is_over.set()
        thread.join()
    assert destroyed_in == [threading.get_ident()]


def test_a_log_that_has_grown_large_is_put_aside_and_a_small_one_goes_on(tmp_path):
    path = tmp_path / "gpu-studio.log"
    _keep_small(path)
    path.write_text("small", encoding="utf-8")
    _keep_small(path)
    assert path.read_text(encoding="utf-8") == "small"
    path.write_text("x" * ((1 << 20) + 1), encoding="utf-8")
    _keep_small(path)
    assert not path.exists()
    assert (tmp_path / "gpu-studio.old.log").stat().st_size == (1 << 20) + 1


def test_a_large_log_that_another_window_holds_open_goes_on(tmp_path, monkeypatch):
    def refuse(_self: Path, _target: Path) -> Path:
        raise PermissionError(13, "The file is in use")  # as on Windows

    path = tmp_path / "gpu-studio.log"
    path.write_text("x" * ((1 << 20) + 1), encoding="utf-8")
    monkeypatch.setattr(Path, "replace", refuse)
    _keep_small(path)
    assert path.exists()


def test_an_open_window_removes_what_killed_ones_left_without_waiting_for_it(monkeypatch):
    removed, may_end = threading.Event(), threading.Event()

    def remove_left_over() -> None:
        may_end.wait(PATIENCE_S)
        removed.set()

    monkeypatch.setattr(app, "remove_left_over", remove_left_over)
    remove_killed_windows_folders()
    assert not removed.is_set()
    may_end.set()
    assert removed.wait(PATIENCE_S)
