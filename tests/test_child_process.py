from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from gpu_studio.child_process import interpreter

if TYPE_CHECKING:
    from pathlib import Path


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
