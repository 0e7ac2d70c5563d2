import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gpu_studio.builds.plan import ChildLog
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.hardware.client import SensorReader
from gpu_studio.process import child_process
from gpu_studio.process.child_process import ChildProcess, direct_start, interpreter
from gpu_studio.process.console_end import ConsoleEnd
from tests.patience import PATIENCE_S, until


@pytest.fixture
def windowed(tmp_path: Path) -> Path:
    for name in ("python.exe", "pythonw.exe"):
        (tmp_path / name).touch()
    return tmp_path / "pythonw.exe"


def test_children_of_a_double_clicked_window_have_standard_streams(windowed: Path):
    console = str(windowed.with_name("python.exe"))
    assert interpreter(str(windowed), "win32") == console
    assert interpreter(str(windowed.with_name("PYTHONW.EXE")), "win32") == console
    assert interpreter(console, "win32") == console


def test_the_python_of_an_environment_is_started_without_its_launcher(windowed: Path):
    own = str(windowed.with_name("Scripts") / "python.exe")
    real = str(windowed.with_name("python.exe"))
    # The base of a window without a console has none either.
    assert direct_start(own, str(windowed), "win32") == (real, {"__PYVENV_LAUNCHER__": own})
    assert direct_start(real, real, "win32") == (real, {})
    assert direct_start(own, real, "linux") == (own, {})


def test_no_process_stands_between_a_child_and_its_parent():
    child = ChildProcess("tests.engine.child_with_family", ["stays"])
    try:
        value = json.loads(next(child.lines()))
        assert child.pid == value["own"]
        assert value["environment"] == sys.prefix
    finally:
        child.kill()
        child.end(PATIENCE_S)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def family() -> Iterator[tuple[ChildProcess, list[int], Path]]:
    child = ChildProcess("tests.engine.child_with_family", ["stays"])
    value = json.loads(next(child.lines()))
    yield child, [child.pid, *value["pids"]], Path(value["folder"])
    child.kill()
    child.end(PATIENCE_S)


@pytest.mark.parametrize("how", ["by itself", "killed here", "killed by another", "asked"])
def test_all_that_a_child_started_and_its_files_end_with_it(family, how):
    child, pids, folder = family
    assert folder.exists()
    assert not any(map(gone, pids))
    if how == "killed here":
        child.kill()
        until(lambda: gone(pids[1]))  # before `end` looks for what is left
    elif how == "killed by another":
        psutil.Process(child.pid).kill()
    elif how == "by itself":
        psutil.Process(pids[1]).kill()
    child.end(PATIENCE_S if how != "asked" else 0.0)
    until(lambda: all(map(gone, pids)))
    assert not folder.exists()
    assert not folder.parent.exists()


def test_the_family_of_a_familys_child_ends_alone(family, monkeypatch):
    outer, pids, _ = family
    monkeypatch.setenv("GPU_STUDIO_FAMILY", outer._family._name)
    inner = ChildProcess("tests.engine.child_with_family")
    own = json.loads(next(inner.lines()))["pids"]
    inner.end(PATIENCE_S)
    until(lambda: all(map(gone, own)))
    assert not any(map(gone, pids))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system knows the family")
def test_what_was_started_a_moment_before_the_end_ends_too():
    # A fifth of these has no variables yet when its parent goes on, a few still at the sweep.
    for _ in range(100):
        family = child_process._Family()
        started = subprocess.Popen(
            ["sleep", "3600"], env=os.environ | family.environment(), start_new_session=True
        )
        family.close()
        until(lambda pid=started.pid: gone(pid))
        started.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_pipe_in_place_of_a_log_keeps_no_child_from_its_work(tmp_path: Path):
    os.mkfifo(tmp_path / "setup.log")
    child = ChildProcess("tests.engine.child_with_family", log_path=tmp_path / "setup.log")
    assert next(child.lines())
    child.end(PATIENCE_S)
    assert ChildLog(tmp_path / "setup.log").text() == ""


class HeldChild:
    """A child that neither ends nor is killed: each wait for it only moves a clock."""

    def __init__(self, child: ChildProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(child_process, "time", self)
        monkeypatch.setattr(child, "_process", self)
        monkeypatch.setattr(child, "_reading", self)
        monkeypatch.setattr(child, "_family", child_process._Family())
        monkeypatch.setattr(child._family, "_members", lambda: ([self.pid], []))
        self.stdin = io.BytesIO()
        self.pid = 1 << 30

    def wait(self, timeout: float) -> int:
        self.now_s += timeout
        raise subprocess.TimeoutExpired("a child", timeout)

    def poll(self) -> None:
        return None

    def kill(self) -> None:
        pass

    def acquire(self, timeout: float) -> bool:
        self.now_s += timeout
        return False

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def close_reader(child: ChildProcess) -> None:
    reader = SensorReader()
    reader._child = child
    reader.close()


def close_engine(child: ChildProcess) -> None:
    engine = ProcessEngine()
    engine._child = child
    engine.close()


@pytest.mark.parametrize("close", [close_reader, close_engine])
def test_a_closing_window_leaves_a_child_behind_that_a_driver_holds(
    close: Callable[[ChildProcess], None], family, monkeypatch: pytest.MonkeyPatch
):
    child, _, _ = family
    with monkeypatch.context() as patch:
        held = HeldChild(child, patch)
        close(child)
    assert 0 < held.now_s <= 1.5


CTRL_C, CTRL_BREAK, CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN = 0, 1, 2, 5, 6


@pytest.mark.parametrize("event", [CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN])
def test_the_console_waits_until_the_program_has_closed(event: int):
    signaled = threading.Event()
    end = ConsoleEnd(signaled.set)
    console = threading.Thread(target=end.handle, args=(event,))
    console.start()
    assert signaled.wait(PATIENCE_S)
    assert console.is_alive()
    end.note_end()
    console.join(PATIENCE_S)
    assert not console.is_alive()
