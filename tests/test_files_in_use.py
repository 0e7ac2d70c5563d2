import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_studio.core.benchmark.history import History
from gpu_studio.core.failure import StudioError
from gpu_studio.model.settings import Settings
from tests.core.benchmark.kept_runs import kept_run
from tests.own_home import own_home
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="no other system locks files so")

ROOT = Path(__file__).resolve().parent.parent
_READ_AND_WRITE = 0xC0000000  # GENERIC_READ | GENERIC_WRITE
_OPEN_EXISTING = 3
# The window, with scripted engines; it says whether the log could be opened.
_START = """
import sys
from PySide6.QtCore import QTimer
from gpu_studio import app
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines

def build(**options):
    print(options["log_path"], flush=True)
    window = build_window(
        engine_factory=Engines(), sensor_source=SteadySensors(cpu_only()), **options
    )
    QTimer.singleShot(0, window, window.close)
    return window

build_window, app.build_window = app.build_window, build
sys.exit(app.main())
"""


@contextlib.contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Open a file as a program does that shares it with no other."""
    if sys.platform == "win32":
        import ctypes
        from ctypes import wintypes

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateFileW.restype = wintypes.HANDLE
        kernel.CreateFileW.argtypes = (
            wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD,
            wintypes.DWORD, wintypes.HANDLE,
        )  # fmt: skip
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        handle = kernel.CreateFileW(str(path), _READ_AND_WRITE, 0, None, _OPEN_EXISTING, 0, None)
        assert handle != wintypes.HANDLE(-1).value, ctypes.get_last_error()
        try:
            with pytest.raises(PermissionError):
                path.read_bytes()
            yield
        finally:
            kernel.CloseHandle(handle)


def test_settings_in_use_are_reported_at_the_start_and_stay(tmp_path: Path):
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark"}', encoding="utf-8")
    with in_use(path):
        settings = Settings(path)
    assert str(path) in settings.trouble
    assert settings.choices.theme != "dark"
    assert json.loads(path.read_text(encoding="utf-8")) == {"theme": "dark"}
    assert list(tmp_path.iterdir()) == [path]


def test_a_change_of_settings_in_use_is_reported_once_and_kept_later(tmp_path: Path):
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark", "tab": "Memory"}', encoding="utf-8")
    settings, result = Settings(path), []
    settings.trouble_reported.connect(result.append)
    with in_use(path):
        settings.change(tab="Switcher")
        settings.change(tab="Benchmark")
    assert len(result) == 1
    assert str(path) in result[0]
    settings.change(code_drawer=True)
    value = json.loads(path.read_text(encoding="utf-8"))
    assert (value["theme"], value["code_drawer"]) == ("dark", True)
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_in_use_is_reported_and_hides_no_other(tmp_path: Path):
    history = History(tmp_path)
    first, second = history.add(kept_run()), history.add(kept_run())
    path = tmp_path / f"{first}.json"
    with in_use(path):
        listed = history.contents()
        assert [entry.key for entry in listed.entries] == [second]
        assert [file.file_name for file in listed.refused] == [path.name]
        with pytest.raises(StudioError):
            history.rename(first, "mine")
        with pytest.raises(StudioError, match="Cannot delete the run"):
            history.delete(first)
        third = history.add(kept_run())
    listed = history.contents()
    assert {entry.key for entry in listed.entries} == {first, second, third}
    assert not listed.refused
    assert len(list(tmp_path.iterdir())) == 3


def test_a_log_in_use_holds_no_start(tmp_path: Path):
    command = [sys.executable, "-c", _START]
    env = {**os.environ, **own_home(tmp_path), "QT_QPA_PLATFORM": "offscreen"}

    def start() -> str:
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=2 * PATIENCE_S,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    log = Path(start())
    with in_use(log):
        assert start() == "None"
    assert start() == str(log)
