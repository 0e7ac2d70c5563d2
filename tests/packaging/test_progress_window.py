from __future__ import annotations

import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from studio_setup import pip_runner
from studio_setup.console import Log, SetupError
from studio_setup.pip_runner import Pip
from studio_setup.progress_window import WindowConsole, show_progress

if TYPE_CHECKING:
    from pathlib import Path


def _messages(console: WindowConsole) -> list[tuple[str, str, float | None]]:
    return [console.messages.get() for _ in range(console.messages.qsize())]


def test_progress_becomes_messages() -> None:
    console = WindowConsole(queue.SimpleQueue())
    console.step(3, 4, "Installing PyTorch…")
    console.note("    No card.")
    console.detail("downloading torch", 0.5)
    assert _messages(console) == [
        ("step", "3/4 Installing PyTorch…", 0.5),
        ("note", "No card.", None),
        ("detail", "downloading torch 50 %", None),
    ]


def test_a_closed_window_ends_the_work_at_its_next_word() -> None:
    console = WindowConsole(queue.SimpleQueue())
    console.close()
    with pytest.raises(SetupError, match="Stopped"):
        console.detail("collecting numpy", None)


@pytest.mark.parametrize("closed_first", [False, True])
def test_a_closed_window_ends_a_silent_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_first: bool
) -> None:
    console = WindowConsole(queue.SimpleQueue())
    begun = threading.Event()
    popen = subprocess.Popen

    def silent_child(command: list[str], **options: object) -> subprocess.Popen[str]:
        if closed_first:
            console.close()
        child = popen([sys.executable, "-c", "import time; time.sleep(600)"], **options)
        begun.set()
        return child

    monkeypatch.setattr(pip_runner.subprocess, "Popen", silent_child)
    pip = Pip(tmp_path, console, Log(tmp_path / ".setup" / "log.txt"))
    outcome: list[bool] = []
    thread = threading.Thread(target=lambda: outcome.append(pip.run("uninstall", "torch")))
    thread.start()
    assert begun.wait(60)
    while not closed_first and console._stop is None:
        begun.wait(0)
    console.close()
    thread.join(60)
    assert outcome == [False]


def test_without_tkinter_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tkinter", None)
    begun: list[object] = []
    assert show_progress(begun.append) is None
    assert begun == []
