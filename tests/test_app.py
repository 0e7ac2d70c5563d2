"""The program's own end, where a call of PyTorch in the window's process cannot be ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from gpu_studio.app import _keep_small
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent

_A_CALL_THAT_DOES_NOT_END = """
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from gpu_studio import app
from gpu_studio.model import engine_session
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

engine_session._LONGEST_END_MS = 50
build_window = app.build_window
app.build_window = lambda **options: build_window(
    engine_factory=lambda environment: Deaf(), **options
)
sys.exit(app.main())
"""


def test_a_call_that_cannot_be_ended_ends_with_the_program(tmp_path):
    places = {name: str(tmp_path) for name in ("HOME", "LOCALAPPDATA", "APPDATA")}
    places |= dict.fromkeys(("XDG_CONFIG_HOME", "XDG_STATE_HOME"), "")
    ended = subprocess.run(
        [sys.executable, "-c", _A_CALL_THAT_DOES_NOT_END],
        cwd=ROOT,
        env={**os.environ, **places, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Destroyed while" not in ended.stderr


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
