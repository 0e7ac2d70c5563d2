from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from studio_setup import commands, suite
from studio_setup.commands import Request, WrongUseError, parse, run_command
from studio_setup.console import SetupError


@pytest.mark.parametrize(
    ("line", "request_"),
    [
        ("run", Request("run", [])),
        ("run bench matmul --json", Request("run", ["bench", "matmul", "--json"])),
        ("run --help", Request("run", ["--help"])),
        ("test -x --torch cpu", Request("test", ["-x", "--torch", "cpu"])),
        ("--torch cpu run", Request("run", [], "cpu")),
        ("--progress window run", Request("run", [], None, True)),
        ("--progress terminal run", Request("run", [])),
        ("--packages newest test", Request("test", [], None, False, "newest")),
        ("", Request("help", [])),
        ("--help", Request("help", [])),
    ],
)
def test_the_command_line(line: str, request_: Request) -> None:
    assert parse(line.split()) == request_


@pytest.mark.parametrize(
    "line", ["start", "--torch", "--fast run", "--progress bar run", "--packages old run"]
)
def test_wrong_use_is_one_line_and_status_2(
    line: str, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    with pytest.raises(WrongUseError):
        parse(line.split())
    assert run_command(root, line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


class _Need:
    """Stands in for a need that is met."""

    python = "/env/bin/python"
    opens_window = False

    def is_met(self) -> bool:
        return True


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """What the commands become."""
    calls: list[tuple[list[str], dict[str, str]]] = []

    def become(command: list[str], environ: dict[str, str]) -> int:
        calls.append((command, environ))
        return 7

    monkeypatch.setattr(commands, "become", become)
    monkeypatch.setattr(commands, "need_of", lambda *_: _Need())
    return calls


def test_run_passes_its_arguments_and_status_on(
    root: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/other/python")
    monkeypatch.setenv("PYTHONPATH", "/other/packages")
    monkeypatch.setenv("QT_QPA_PLATFORM", "vnc")
    assert run_command(root, ["run", "bench", "matmul", "--json"]) == 7
    [(command, environ)] = started
    assert command == ["/env/bin/python", "-m", "gpu_studio", "bench", "matmul", "--json"]
    assert {"PYTHONHOME", "PYTHONPATH"} & set(environ) == set()
    assert environ["QT_QPA_PLATFORM"] == "vnc"


def test_test_runs_pytest_off_the_screen_from_the_root(
    root: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(command: list[str], environ: dict[str, str]) -> int:
        started.append((command, environ))
        return 7

    monkeypatch.setattr(suite, "run", run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    assert run_command(root, ["test", "-x", "tests/core/test_units.py"]) == 7
    [(command, environ)] = started
    assert command == ["/env/bin/python", "-m", "pytest", "-x", "tests/core/test_units.py"]
    assert environ["QT_QPA_PLATFORM"] == "offscreen"


def test_test_on_windows_starts_it_from_the_root(
    root: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(root, ["test", "--windows", "--short", "engine"]) == 7
    [(command, _)] = started
    assert command == ["/env/bin/python", "-m", "tests.windows", "--short", "engine"]
    assert Path.cwd() == root


def test_a_failed_set_up_is_a_sentence_and_status_1(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise SetupError("The disk is full.")

    monkeypatch.setattr(commands, "_start", fail)
    assert run_command(root, ["run"]) == 1
    assert capsys.readouterr().err == "The disk is full.\n"


@pytest.mark.parametrize(
    ("display", "line", "opens_window", "has_screen"),
    [
        (":0", "run", True, True),
        (":0", "run devices", False, True),
        ("", "run", False, False),
        ("", "test", True, False),
        (":0", "test", True, False),
    ],
)
def test_what_a_command_needs(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    display: str,
    line: str,
    opens_window: bool,
    has_screen: bool,
) -> None:
    monkeypatch.setattr(os, "environ", {"DISPLAY": display})
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("studio_setup.need.has_display", lambda environ: bool(environ["DISPLAY"]))
    need = commands.need_of(root, parse(line.split()))
    assert (need.opens_window, need.has_screen) == (opens_window, has_screen)
    assert need.extras == (("lint", "test") if line == "test" else ())


def test_a_set_up_without_a_terminal_says_so_in_a_window(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise SetupError("The disk is full.")

    collected: list[tuple[object, ...]] = []
    user32 = SimpleNamespace(MessageBoxW=lambda *arguments: collected.append(arguments))
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(user32=user32), raising=False)
    monkeypatch.setattr(commands, "_start", fail)
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setattr("sys.stderr", None)  # as under pythonw.exe
    assert run_command(root, ["run"]) == 1
    assert collected == [(None, "The disk is full.", "GPU Studio", 0x30)]


def test_a_double_click_on_windows_starts_the_window_without_a_console(
    root: Path, started: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder that is itself called like the interpreter is no reason to go astray.
    monkeypatch.setattr(_Need, "python", "/my python.exe/.venv/Scripts/python.exe")
    monkeypatch.setattr(commands, "start_detached", commands.become)
    monkeypatch.setattr("sys.platform", "win32")
    assert run_command(root, ["--progress", "window", "run"]) == 7
    python, *rest = started[0][0]
    assert Path(python) == Path("/my python.exe/.venv/Scripts/pythonw.exe")
    assert rest == ["-m", "gpu_studio"]
