from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from studio_setup import engine, pip_runner
from studio_setup.console import Log, SetupError
from studio_setup.engine import EngineSetUp
from studio_setup.pip_runner import Pip
from studio_setup.progress_window import WindowConsole, show_progress

from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.trouble import no_network

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


DOWNLOADING = InstallProgress(InstallStage.DOWNLOADING, 50_000_000, 200_000_000, 0.2, 30.0)
READY = InstallProgress(InstallStage.READY, fraction=1.0, result="It ran.")


@pytest.fixture
def set_up(
    tmp_path: Path, console: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., EngineSetUp]:
    def with_lines(*received: InstallProgress, then: str = "") -> EngineSetUp:
        more = {"family": "cu126", "reason": "A card wants it."}
        lines = [json.dumps(one.value() | more) for one in received]
        script = tmp_path / "command.py"
        script.write_text(
            f"import sys, time\nfor line in {lines!r}:\n    print(line, flush=True)\n"
            f"sys.stderr.write(' '.join(sys.argv[1:]))\n{then}\n",
            encoding="utf-8",
        )
        monkeypatch.setattr(engine, "python_in", lambda _: sys.executable)
        monkeypatch.setattr(engine, "_COMMAND", (str(script),))
        return EngineSetUp(tmp_path, console, Log(tmp_path / ".setup" / "log.txt"))

    return with_lines


def test_the_build_is_named_and_its_progress_and_reason_are_shown(
    set_up: Callable[..., EngineSetUp], console: Any, tmp_path: Path
) -> None:
    assert set_up(DOWNLOADING, DOWNLOADING, READY).install("auto") == "cu126"
    text, fraction = console.details[-1]
    assert fraction == 0.2
    assert all(part in text for part in ("cu126 build", "50", "200", "30 seconds left"))
    assert [line.strip() for line in console.lines] == ["A card wants it.", "It ran."]
    assert "auto --json" in (tmp_path / ".setup" / "log.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (InstallProgress(InstallStage.FAILED, trouble=no_network("x.org")), r"cannot reach x\.org"),
        (InstallProgress(InstallStage.PAUSED), "continues from here"),
        (DOWNLOADING, "ended without a reason"),
    ],
)
def test_another_end_is_a_sentence(
    set_up: Callable[..., EngineSetUp], last: InstallProgress, words: str
) -> None:
    with pytest.raises(SetupError, match=words):
        set_up(last).install("auto")


def test_a_window_that_is_closed_ends_the_command(
    set_up: Callable[..., EngineSetUp], console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = threading.Event()
    monkeypatch.setattr(console, "detail", lambda *_: (shown.set(), console.stop()))
    with pytest.raises(SetupError):
        set_up(DOWNLOADING, then="sys.stdin.close(); time.sleep(600)").install("auto")
    assert shown.is_set()


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
