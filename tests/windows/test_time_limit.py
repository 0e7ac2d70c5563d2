import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.windows import __main__ as test_windows
from tests.windows import wine_pc
from tests.windows.set_up import SkippedError
from tests.windows.suite import try_twice
from tests.windows.time_limit import breaking_off
from tests.windows.wine_pc import WindowsPc, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="such a Windows is made on Linux")

SOON_S = 0.2
LATE_S = 20.0
# A program in a session of its own, which keeps its parent's output open; and one that waits too.
LEAVING = "setsid -f cat /dev/zero >/dev/null 3>&1"
HANGING = f"{LEAVING} & cat /dev/zero >/dev/null"


@pytest.fixture
def pc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WindowsPc:
    """A PC whose programs are a shell's, and which has no Wine."""
    monkeypatch.setattr(wine_pc, "WINE", "/bin/sh")
    monkeypatch.setattr(wine_pc, "_SERVER", tmp_path / "none")
    pc = WindowsPc(tmp_path)
    pc.path("C:\\").mkdir(parents=True)
    return pc


def in_an_hour() -> float:
    return time.monotonic() + 3600


def results(*given: bool) -> tuple[Callable[[float], bool], list[float]]:
    """A step that gives these results, one at each call, and the seconds that each call had."""
    calls: list[float] = []

    def step(longest_s: float) -> bool:
        calls.append(longest_s)
        return given[len(calls) - 1]

    return step, calls


def test_only_what_failed_is_tried_once_more_and_has_time_for_it():
    good, good_calls = results(True)
    bad, bad_calls = results(False, True)
    assert try_twice([good, bad], in_an_hour())
    assert len(good_calls) == 1
    first, second = bad_calls
    assert 1700 < first <= 1800
    assert 1800 < second <= 3600
    assert not try_twice([results(False, False)[0]], in_an_hour())


def test_without_time_it_counts_as_failed(capsys: pytest.CaptureFixture[str]):
    step, calls = results(True)
    assert not try_twice([step], time.monotonic() - 1)
    assert calls == []
    assert "no time is left" in capsys.readouterr().out


def test_a_program_that_hangs_is_ended_with_all_that_it_started(pc: WindowsPc):
    status, _ = pc.run(["-c", HANGING], SOON_S, folder="C:\\")
    assert status != 0
    assert pc._processes() == {}


def test_a_program_has_ended_though_what_it_left_keeps_its_output_open(pc: WindowsPc):
    status, output = pc.run(["-c", f"echo begun; {LEAVING}; echo done"], LATE_S, folder="C:\\")
    assert (status, output.split()) == (0, ["begun", "done"])
    # It was not ended for being late.
    assert wait_until(lambda: len(pc._processes()) == 1, LATE_S, look_s=SOON_S)
    pc.shut_down()
    assert pc._processes() == {}


def test_what_is_run_next_is_not_ended_with_what_hung(
    pc: WindowsPc, monkeypatch: pytest.MonkeyPatch
):
    end, ended = pc._end, []

    def noted_end(process: subprocess.Popen[bytes]) -> None:
        end(process)
        ended.append(process)

    monkeypatch.setattr(pc, "_end", noted_end)
    pc.run(["-c", HANGING], SOON_S, folder="C:\\")
    assert len(ended) == 1


def test_a_wait_for_a_process_is_broken_off():
    with (
        pytest.raises(SkippedError, match="too long"),
        breaking_off(SOON_S, SkippedError("too long")),
    ):
        subprocess.run(["cat", "/dev/zero"], stdout=subprocess.DEVNULL, check=True)


@pytest.mark.parametrize("status", [0, 1])
def test_the_short_part_has_the_status_of_its_tests(
    status: int, pc: WindowsPc, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "argv", ["windows", "--short", "--in", str(pc.folder)])
    monkeypatch.setattr(test_windows, "set_up", lambda *_: pc)
    monkeypatch.setattr(test_windows, "_short", lambda *_: status == 0)
    monkeypatch.setattr(test_windows, "screen", lambda: breaking_off(3600, SkippedError()))
    assert test_windows.main() == status


def test_a_set_up_that_takes_too_long_is_skipped_with_a_sentence(
    pc: WindowsPc, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def set_up(*_: object) -> WindowsPc:
        pc.run(["-c", HANGING], 3600, folder="C:\\")
        return pc

    monkeypatch.setattr(sys, "argv", ["windows", "--short", "--in", str(pc.folder)])
    monkeypatch.setattr(test_windows, "set_up", set_up)
    monkeypatch.setattr(test_windows, "_LONGEST_SHORT_SET_UP_S", SOON_S)
    assert test_windows.main() == test_windows.SKIPPED
    assert "Windows: skipped, it could not be set up within" in capsys.readouterr().out
    assert pc._processes() == {}
