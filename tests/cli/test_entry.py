from __future__ import annotations

import sys
from types import ModuleType

import pytest

from gpu_studio import __main__ as entry

NAMES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture
def started(monkeypatch):
    """What was started: "window" or the terminal's arguments."""
    seen = []
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    app = ModuleType("gpu_studio.app")
    app.main = lambda: seen.append("window") or 0
    monkeypatch.setitem(sys.modules, "gpu_studio.app", app)
    monkeypatch.setattr("gpu_studio.cli.main.main", lambda arguments: seen.append(arguments) or 0)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_with_a_display_the_window_opens(started, monkeypatch, name):
    monkeypatch.setenv(name, ":0")
    monkeypatch.setattr("sys.argv", ["gpu-studio"])
    assert entry.main() == 0
    assert started == ["window"]


def test_without_a_display_the_terminal_takes_over(started, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu-studio"])
    entry.main()
    assert started == [[]]


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_other_systems_have_a_display(started, monkeypatch, platform):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("sys.argv", ["gpu-studio"])
    entry.main()
    assert started == ["window"]


def test_a_command_goes_to_the_terminal(started, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.argv", ["gpu-studio", "devices", "--json"])
    entry.main()
    assert started == [["devices", "--json"]]


def test_a_missing_library_is_a_sentence(started, monkeypatch, capsys):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.argv", ["gpu-studio"])
    monkeypatch.setitem(sys.modules, "gpu_studio.app", None)
    assert entry.main() == 1
    assert "bootstrap.py run" in capsys.readouterr().err
