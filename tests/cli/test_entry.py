import socket
import sys
from types import ModuleType

import pytest

from gpu_studio import __main__ as entry
from gpu_studio.core.program_form import typed

NAMES = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


@pytest.fixture
def started(monkeypatch):
    """What was started: "window" or the terminal's arguments."""
    seen = []
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(entry, "_answers", lambda display: True)
    monkeypatch.setattr(entry, "_is_listening", lambda path: True)
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


def test_a_display_that_does_not_answer_is_none(started, monkeypatch):
    monkeypatch.setattr(entry, "_answers", lambda display: display != ":77")
    monkeypatch.setenv("DISPLAY", ":77")
    monkeypatch.setattr("sys.argv", ["gpu-studio"])
    entry.main()
    assert started == [[]]


@pytest.mark.skipif(sys.platform == "win32", reason="Wayland is for Unix")
def test_a_wayland_session_that_has_ended_is_none(monkeypatch, tmp_path):
    for name in (*NAMES, "WAYLAND_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-7")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert not entry.has_display()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-7"))
        assert not entry.has_display()
        server.listen()
        assert entry.has_display()
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        assert not entry.has_display()
        monkeypatch.setenv("WAYLAND_DISPLAY", str(tmp_path / "wayland-7"))
        assert entry.has_display()
    monkeypatch.setenv("WAYLAND_DISPLAY", "/" + "x" * 200)  # longer than any socket's name
    assert not entry.has_display()


@pytest.mark.skipif(sys.platform == "win32", reason="X11 is for Unix")
class TestAnswers:
    def test_a_local_server_by_its_socket(self, tmp_path, monkeypatch):
        monkeypatch.setattr(entry, "_X11_SOCKETS", str(tmp_path / "X"))
        assert not entry._answers(":7")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "X7"))
            assert not entry._answers(":7")  # one that crashed leaves its file
            server.listen()
            assert entry._answers(":7.0")
            assert entry._answers("unix:7")

    def test_another_host_by_its_port(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            number = server.getsockname()[1] - 6000
            assert entry._answers(f"127.0.0.1:{number}.0")
        assert not entry._answers(f"127.0.0.1:{number}.0")

    @pytest.mark.parametrize("display", ["", "nonsense", ":x", "/tmp/launch-1/org.xquartz:0"])
    def test_a_name_of_another_kind_is_left_to_qt(self, display):
        assert entry._answers(display)


def test_without_a_display_the_terminal_takes_over(started, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu-studio"])
    entry.main()
    assert started == [[]]


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
    assert typed("gpu-studio devices") in capsys.readouterr().err
