from __future__ import annotations

import gc
import threading

import pytest

from gpu_studio.model import collector
from gpu_studio.model.collector import Collector


class Knot:
    """Garbage that only the cycle collector finds; notes the thread that destroyed it."""

    def __init__(self, destroyed_in: list[int]) -> None:
        self._me = self
        self._destroyed_in = destroyed_in

    def __del__(self) -> None:
        self._destroyed_in.append(threading.get_ident())


@pytest.fixture
def automatic():
    """Python's own collection, as a program has it before a window is there."""
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


def test_garbage_is_destroyed_in_the_thread_of_the_collector(qtbot, automatic, monkeypatch):
    monkeypatch.setattr(collector, "_PERIOD_MS", 10)
    mine = Collector()
    mine.start()
    destroyed_in: list[int] = []
    Knot(destroyed_in)
    is_over = threading.Event()

    def work() -> None:
        collected: list[list[int]] = []
        while not is_over.is_set():
            collected.append([])
            if len(collected) > 100_000:
                collected.clear()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        qtbot.waitUntil(lambda: bool(destroyed_in))
    finally:
        is_over.set()
        thread.join()
        mine.stop()
    assert destroyed_in == [threading.get_ident()]


def test_python_gets_back_what_it_had(qapp, automatic):
    mine = Collector()
    mine.start()
    assert not gc.isenabled()
    mine.start()
    mine.stop()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.disable()
    mine.start()
    mine.stop()
    assert not gc.isenabled()


def test_the_last_of_several_gives_back(qapp, automatic):
    first, second = Collector(), Collector()
    first.start()
    second.start()
    first.stop()
    assert not gc.isenabled()
    second.stop()
    assert gc.isenabled()
