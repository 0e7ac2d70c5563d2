"""The programs on a card: one true sentence each, a row each, and ending one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.notice import Tone
from gpu_studio.model.devices import programs as module
from gpu_studio.model.devices.programs import (
    end_process,
    note,
    process_row,
    program_notices,
    question,
)
from tests.driving.window import plain
from tests.patience import PATIENCE_S

GIB, MIB = 1 << 30, 1 << 20
OWN = {4711: "This program's PyTorch"}


def process(pid, name="python", memory_bytes: int | None = MIB, **changes):
    return GpuProcess(pid=pid, name=name, memory_bytes=memory_bytes, **changes)


def sentences(*processes, most=3):
    notices = program_notices(processes, OWN, 2 * GIB, most)
    return [(plain(one.sentence), one.tone) for one in notices]


def test_a_program_is_named_once_with_all_of_its_memory():
    assert sentences(
        process(1, "/usr/lib/xorg/Xorg", 96 * MIB, kind="graphics"),
        process(2, "firefox", 88 * MIB, kind="compute and graphics"),
        process(3, r"C:\Program Files\firefox", 100 * MIB, kind="graphics"),
        process(4, "hidden", None),
    ) == [
        ("firefox uses the card: 188 MiB.", Tone.PLAIN),
        ("Xorg draws: 96 MiB.", Tone.PLAIN),
        ("hidden computes.", Tone.PLAIN),
    ]


def test_what_makes_a_card_slow_comes_first_in_amber():
    found = sentences(
        process(1, "browser", 400 * MIB, kind="graphics"),
        process(2, "ollama", 300 * MIB, busy_percent=83.0),
    )
    assert found[0] == (
        "ollama computes: 83 %, 300 MiB. What else you run on it is slower.",
        Tone.AMBER,
    )
    assert sentences(process(2, "ollama", GIB + MIB, busy_percent=3.0))[0][1] is Tone.AMBER
    assert sentences(process(4711, "python", GIB + MIB, busy_percent=99.0)) == [
        ("This program's PyTorch computes: 99 %, 1.00 GiB.", Tone.PLAIN)
    ]


def test_more_programs_than_lines_end_in_one_sentence():
    many = [process(n, f"p{n}", (9 - n) * MIB) for n in range(5)]
    assert [sentence for sentence, _ in sentences(*many)] == [
        "p0 computes: 9 MiB.", "p1 computes: 8 MiB.", "3 other programs: 18 MiB.",
    ]  # fmt: skip
    assert len(sentences(*many[:3])) == 3


def test_a_row_says_whose_a_process_is_and_what_is_not_known():
    row = process_row(process(7, "Xorg", 90 * MIB, user="root", kind="graphics"), OWN)
    assert tuple(map(plain, row)) == ("7", "Xorg", "root", "graphics", "90 MiB")
    row = process_row(process(4711, memory_bytes=None), OWN)
    assert row == ("4711", "python  (this program's PyTorch)", "n/a", "compute", "n/a")


def test_the_note_says_what_the_table_cannot(monkeypatch):
    assert "no program" in note([], "")
    used = note([], "800 MiB of 2.00 GiB")  # it read as a card that nobody uses
    assert "800 MiB of 2.00 GiB used" in used
    assert "no program" not in used
    assert note([process(1, memory_bytes=None), process(2)], "") == ""
    for is_windows, who in ((False, "driver"), (True, "Windows")):
        monkeypatch.setattr(module, "IS_WINDOWS", is_windows)
        assert who in note([process(1, memory_bytes=None)], "")


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
    assert asked.startswith("End Xorg of root (process 900)? Unsaved work is lost.")
    assert "draws on the screen" in asked
    assert "draws" not in question(GpuProcess(pid=4711, name="python"))
