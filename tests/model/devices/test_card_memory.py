"""The allocator of the card that is looked at: asked for while somebody looks, and only then."""

import os
import subprocess
import sys

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.model.devices import programs as module
from gpu_studio.model.devices.programs import (
    end_process,
    may_end,
    note,
    process_row,
)
from tests.driving.window import plain
from tests.fakes.pc import gt_1030, two_cards
from tests.model.devices.looking import row, start
from tests.patience import PATIENCE_S


def questions(engines):
    return [request.device for request in engines.requests if isinstance(request, ReadMemory)]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_pytorchs_memory_is_read_while_it_is_shown(qtbot, studio, with_cuda, model):
    start(qtbot, studio)
    assert row(model, "allocated").reason == "Not read yet."
    model._memory._timer.setInterval(60_000)
    model.see(is_seen=True)
    qtbot.waitUntil(lambda: row(model, "allocated").is_known)
    assert row(model, "allocated").value.startswith("1")
    assert row(model, "reserved").value.startswith("2")
    model.select(two_cards().cards[1].identity)
    qtbot.waitUntil(lambda: questions(with_cuda)[-1] == "cuda:1")
    model.see(is_seen=False)
    assert not model._memory._timer.isActive()
    qtbot.waitUntil(lambda: studio.session.is_free)
    with qtbot.assertNotEmitted(studio.session.request_submitted):
        model.select(two_cards().cards[0].identity)  # by another tab


@pytest.mark.parametrize("inventory", [gt_1030()])
@pytest.mark.parametrize(
    ("end", "starts"),
    [
        (EngineEnded(exit_code=-11), 2),
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "No.", fatal=True)), 2),
        (RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "No.")), 1),
    ],
)
def test_a_question_that_an_engine_failed_over_is_not_asked_again(
    qtbot, studio, with_cuda, model, end, starts
):
    answers = with_cuda.scripts[ReadMemory]
    with_cuda.scripts[ReadMemory] = [end]
    start(qtbot, studio)
    model._memory._timer.setInterval(5)
    with qtbot.waitSignal(studio.session.request_submitted):
        model.see(is_seen=True)
    qtbot.waitUntil(lambda: [type(r) for r in with_cuda.requests].count(DescribeEngine) == starts)
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
    for _ in range(5):
        with qtbot.waitSignal(model._memory._timer.timeout):
            pass
    assert len(questions(with_cuda)) == 1
    with_cuda.scripts[ReadMemory] = answers
    model.select("cpu")
    model.select(gt_1030().cards[0].identity)
    qtbot.waitUntil(lambda: row(model, "allocated").is_known)
    model.see(is_seen=False)
    qtbot.waitUntil(lambda: studio.session.state.is_idle)


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
