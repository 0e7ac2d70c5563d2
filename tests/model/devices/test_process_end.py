from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.devices import process_end
from gpu_studio.model.devices.process_end import end_process, question
from tests.patience import PATIENCE_S


@pytest.fixture
def sleeper():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield child
    child.kill()
    child.communicate()


def test_a_process_is_asked_to_end_and_ends(sleeper):
    result = end_process(GpuProcess(pid=sleeper.pid, name="python"), {os.getpid()})
    outcome = "was ended" if sys.platform == "win32" else "was asked to end"
    assert result == f"python ({sleeper.pid}) {outcome}."
    assert sleeper.wait(PATIENCE_S) != 0


def test_this_program_does_not_end_its_own(sleeper):
    result = end_process(GpuProcess(pid=sleeper.pid, name="python"), {os.getpid(), sleeper.pid})
    assert result.startswith("python belongs to this program")
    assert sleeper.poll() is None


def test_one_that_is_gone_is_said_to_be(sleeper):
    sleeper.kill()
    sleeper.wait()
    result = end_process(GpuProcess(pid=sleeper.pid, name="python"), set())
    assert result == f"python ({sleeper.pid}) has already ended."


def test_one_that_is_gone_is_said_to_be_by_windows_too(monkeypatch):
    def refuse(_pid, _signal):
        error = OSError(22, "The parameter is incorrect")
        error.winerror = 87
        raise error

    monkeypatch.setattr(os, "kill", refuse)
    result = end_process(GpuProcess(pid=4711, name="python.exe"), set())
    assert result == "python.exe (4711) has already ended."


def test_windows_ends_a_process_at_once(monkeypatch):
    monkeypatch.setattr(os, "kill", lambda _pid, _signal: None)
    monkeypatch.setattr(process_end, "_is_over_on_windows", lambda _pid: False)
    monkeypatch.setattr("sys.platform", "win32")
    result = end_process(GpuProcess(pid=4711, name="game.exe"), set())
    assert result == "game.exe (4711) was ended."


@pytest.mark.parametrize(
    ("is_over", "outcome"),
    # Windows denies the same to those who would end a process again that has ended and is held.
    [(False, "belongs to another user"), (True, "has already ended")],
)
def test_what_is_not_allowed_is_a_sentence(monkeypatch, is_over, outcome):
    def refuse(_pid, _signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(process_end, "_is_over_on_windows", lambda _pid: is_over)
    assert outcome in end_process(GpuProcess(pid=1, name="init"), set())


def test_the_question_says_what_is_lost():
    asked = question(GpuProcess(pid=900, name="Xorg", user="root", kind="graphics"))
    assert asked.startswith("End Xorg of root (process 900)? Unsaved work is lost.")
    assert "draws on the screen" in asked
    assert "draws" not in question(GpuProcess(pid=4711, name="python"))
