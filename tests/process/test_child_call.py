import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from gpu_studio.process import child_call
from gpu_studio.process.child_call import ChildAnswer, ChildCall
from tests.family import family_running
from tests.patience import PATIENCE_S, until

_MODULE = "tests.process.called"
_MIB = 1 << 20


def called(
    content: bytes, longest_s: float = PATIENCE_S, most_bytes: int = 8 * _MIB
) -> ChildAnswer:
    return ChildCall(_MODULE, memory_bytes=256 * _MIB).run(
        content, longest_s=longest_s, most_bytes=most_bytes
    )


def test_a_message_and_its_answer_may_be_longer_than_a_pipe_holds() -> None:
    assert called(b"ab" * _MIB) == ChildAnswer(b"ba" * _MIB, 0)


def test_an_endless_answer_is_none() -> None:
    assert called(b"ab" * _MIB, most_bytes=1000) == ChildAnswer()


def test_a_refusal_is_a_reason_in_one_printable_line() -> None:
    refused = called(b"refuse")
    assert (refused.exit_code, refused.reason) == (1, "it is no message")


def test_a_child_that_never_answers_is_killed() -> None:
    assert called(b"hang", longest_s=0.1) == ChildAnswer(is_late=True)


def test_a_sleep_of_the_pc_is_not_the_childs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sleeps_s = time.monotonic, itertools.chain([0.0], itertools.repeat(3600.0))
    monkeypatch.setattr(child_call.time, "monotonic", lambda: clock() + next(sleeps_s))
    assert called(b"ab").content == b"ba"


@pytest.mark.skipif(sys.platform == "darwin", reason="watched there while it works")
def test_a_child_gets_no_more_memory_than_its_limit() -> None:
    hungry = called(b"eat")
    assert hungry.exit_code != 0
    assert hungry.content == b""


def test_a_child_that_uses_too_much_where_nothing_limits_it_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child_call, "footprint_bytes", lambda _pid: 300 * _MIB)
    killed = called(b"hang")
    assert (killed.content, killed.is_late) == (b"", False)
    assert killed.exit_code != 0


def child_of(parent: psutil.Process) -> psutil.Process:
    """Return the child that is called; Windows has a launcher above each Python."""
    return family_running(parent, _MODULE)[-1]


@pytest.mark.skipif(sys.platform == "darwin", reason="ended there by its processor time alone")
def test_a_child_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    message = b"hang" + os.fsencode(tmp_path / "works")
    script = (
        "from gpu_studio.process.child_call import ChildCall\n"
        f"ChildCall({_MODULE!r}, memory_bytes=1 << 28).run({message!r}, longest_s=99, most_bytes=9)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    until((tmp_path / "works").exists)
    child = child_of(psutil.Process(parent.pid))
    parent.kill()
    parent.wait(PATIENCE_S)
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "no longer needed"])
def test_a_call_ends_its_child_at_once(tmp_path: Path, is_cancelled: bool) -> None:
    call, over = ChildCall(_MODULE), threading.Event()
    answers: list[ChildAnswer] = []

    def run() -> None:
        message = b"hang" + os.fsencode(tmp_path / "works")
        limits = {"longest_s": PATIENCE_S, "most_bytes": 9}
        answers.append(call.run(message, **limits, is_over=over.is_set))

    thread = threading.Thread(target=run)
    thread.start()
    until((tmp_path / "works").exists)
    child = child_of(psutil.Process())
    if is_cancelled:
        call.cancel()
    over.set()
    thread.join(PATIENCE_S)

    assert answers == [ChildAnswer()]
    assert not child.is_running()
    assert call.run(b"ab", longest_s=1.0, most_bytes=9) == ChildAnswer(), "it starts none either"


_ECHO = """
import os, sys
from gpu_studio.process.child_streams import take_over_stdin, take_over_stdout
requests, answers = take_over_stdin(), take_over_stdout()
print("printed")
os.write(1, b"by a library\\n")
assert sys.stdin.read() == "" and os.read(0, 9) == b""
# A child of the child must not keep the pipes open.
assert not any(os.get_inheritable(one.fileno()) for one in (requests, answers))
answers.write(requests.readline().upper())
answers.flush()
"""


def test_the_pipes_are_kept_and_nothing_else_reaches_them():
    done = subprocess.run(
        [sys.executable, "-c", _ECHO],
        input=b"asked\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == b"ASKED\n"
    assert sorted(done.stderr.replace(b"\r", b"").split(b"\n")) == [
        b"",
        b"by a library",
        b"printed",
    ]
