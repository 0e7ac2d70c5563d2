from __future__ import annotations

import threading

import pytest

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
