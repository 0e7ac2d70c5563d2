"""The programs on a card: a row each, and ending one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.devices import programs as module
from gpu_studio.model.devices.programs import (
    end_process,
    may_end,
    note,
    process_row,
    question,
)
from tests.driving.window import plain
from tests.patience import PATIENCE_S

MIB = 1 << 20
OWN = {4711: "This program's PyTorch"}


def process(pid, name="python", memory_bytes: int | None = MIB, **changes):
    return GpuProcess(pid=pid, name=name, memory_bytes=memory_bytes, **changes)


def test_a_row_says_whose_a_process_is_and_what_is_not_known():
    xorg = process(
        7, "Xorg", 90 * MIB, user="root", kind="graphics", busy_percent=3.0, shared_bytes=MIB
    )
    row = process_row(xorg, OWN)
    assert tuple(map(plain, row)) == ("7", "Xorg", "root", "graphics", "3 %", "90 MiB", "1 MiB")
    row = process_row(process(4711, memory_bytes=None, kind=""), OWN)
    assert row == ("4711", "python  (this program's PyTorch)", *["n/a"] * 5)
    assert process_row(process(8, unit="Docker 3f2a"), OWN)[1] == "python  (Docker 3f2a)"


@pytest.mark.parametrize(
    ("changes", "is_allowed"),
    [
        ({"is_yours": True}, True), ({"is_yours": False}, False), ({}, False),
        ({"is_yours": True, "pid": 4711}, False), ({"is_yours": True, "name": "unknown"}, False),
    ],
)  # fmt: skip
def test_only_the_users_own_programs_may_be_ended(changes, is_allowed):
    assert may_end(GpuProcess(**{"pid": 7, "name": "python", **changes}), OWN) is is_allowed


def test_the_note_says_what_the_table_cannot():
    assert "no program" in note([], "")
    used = note([], "800 MiB of 2.00 GiB")  # it read as a card that nobody uses
    assert "800 MiB of 2.00 GiB used" in used
    assert "no program" not in used
    assert note([process(1, memory_bytes=None), process(2)], "") == ""
    assert "driver does not report" in note([process(1, memory_bytes=None)], "")


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
    monkeypatch.setattr(module, "_is_over_on_windows", lambda _pid: False)
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
    monkeypatch.setattr(module, "_is_over_on_windows", lambda _pid: is_over)
    assert outcome in end_process(GpuProcess(pid=1, name="init"), set())


def test_the_question_says_what_is_lost():
    asked = question(GpuProcess(pid=900, name="Xorg", user="root", kind="graphics"))
    assert asked.startswith("End Xorg (process 900)? What is not saved in Xorg is lost")
    assert "draws on the screen" in asked
    assert "draws" not in question(GpuProcess(pid=4711, name="python"))
