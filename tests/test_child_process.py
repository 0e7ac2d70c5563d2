from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from gpu_studio.child_process import ChildProcess, interpreter
from tests.patience import PATIENCE_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def test_any_other_interpreter_is_taken_as_it_is(windowed: Path):
    assert interpreter(str(windowed), "linux") == str(windowed)
    assert interpreter() == sys.executable
    windowed.with_name("python.exe").unlink()
    assert interpreter(str(windowed), "win32") == str(windowed)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def family() -> Iterator[tuple[ChildProcess, list[int], Path]]:
    child = ChildProcess("tests.engine.child_with_family", ["stays"])
    told = json.loads(next(child.lines()))
    yield child, [child.pid, *told["pids"]], Path(told["folder"])
    child.kill()
    child.end(PATIENCE_S)


@pytest.mark.parametrize("how", ["by itself", "killed here", "killed by another", "asked"])
def test_all_that_a_child_started_and_its_files_end_with_it(family, how):
    child, pids, folder = family
    assert folder.exists()
    assert not any(map(gone, pids))
    if how == "killed here":
        child.kill()
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


def test_a_kill_reaches_what_a_child_started_at_once(family):
    child, pids, _ = family
    child.kill()
    until(lambda: gone(pids[1]))
