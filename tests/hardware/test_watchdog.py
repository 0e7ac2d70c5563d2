from __future__ import annotations

import os
import subprocess
import sys
import threading

import psutil
import pytest

from gpu_studio.hardware.maker_cards import ProcessNames
from gpu_studio.hardware.watchdog import SilentError, Watchdog
from tests.patience import PATIENCE_S, until


@pytest.fixture
def held():
    """A call that returns when the test lets it, at its end at the latest."""
    go = threading.Event()

    def wait():
        go.wait(2 * PATIENCE_S)
        return "late"

    wait.go = go
    yield wait
    go.set()


@pytest.fixture
def watchdog():
    one = Watchdog()
    yield one
    one.close()


def test_an_answer_and_an_error_come_back(watchdog):
    assert watchdog.call("card", lambda: 7, PATIENCE_S) == 7
    with pytest.raises(ZeroDivisionError):
        watchdog.call("card", lambda: 1 // 0, PATIENCE_S)
    assert not watchdog.has_left_behind


def test_a_call_that_hangs_is_left_behind_and_the_others_go_on(watchdog, held):
    with pytest.raises(SilentError):
        watchdog.call("card", held, 0.05)
    assert watchdog.is_stuck("card")
    assert watchdog.call("other", lambda: 7, PATIENCE_S) == 7


def test_a_subject_that_hangs_is_not_asked_again_before_it_has_answered(watchdog, held):
    asked = []
    with pytest.raises(SilentError):
        watchdog.call("card", held, 0.05)
    with pytest.raises(SilentError):
        watchdog.call("card", lambda: asked.append(1), PATIENCE_S)
    assert asked == []
    held.go.set()
    until(lambda: not watchdog.is_stuck("card"))
    assert watchdog.call("card", lambda: "now", PATIENCE_S) == "now"
    assert not watchdog.has_left_behind


def test_this_process_has_a_name_and_a_user():
    name, user = ProcessNames()(os.getpid())
    assert name == psutil.Process().name()
    assert user == psutil.Process().username().rpartition("\\")[2]  # Windows names the PC as well


def test_windows_puts_the_pc_before_the_user(monkeypatch):
    monkeypatch.setattr("psutil.Process.username", lambda self: "DESKTOP-1\\ai")
    assert ProcessNames()(os.getpid())[1] == "ai"


def test_a_process_that_ended_is_not_remembered():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    names = ProcessNames()
    before = names(child.pid)
    child.communicate(b"\n")
    assert before[0]
    assert names(child.pid) == ("", None)


def test_the_driver_names_what_the_system_hides(monkeypatch):
    def hide(pid):
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr("psutil.Process", hide)
    names = ProcessNames(lambda pid: "C:\\Games\\game.exe" if pid == 4 else None)
    assert names(4) == ("game.exe", None)
    assert names(5) == ("", None)


def test_a_name_of_any_bytes_can_be_sent(monkeypatch):
    monkeypatch.setattr("psutil.Process.name", lambda self: "gam\udce9\n")
    assert ProcessNames()(os.getpid())[0] == "gam\ufffd\ufffd"
