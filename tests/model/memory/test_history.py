"""What a device's memory held over time, on a clock that waits while nothing happens."""

from __future__ import annotations

import pytest

from gpu_studio.model.memory.engine_memory import WINDOW_S, Mark, MemoryHistory
from tests.fakes.memory_answers import memory_read
from tests.model.memory.looks import MIB

START = Mark(label="experiment", is_start=True)


def read_at(history, mib, at_s):
    history.add(memory_read(allocated=mib, reserved=128), at_s)


def test_an_experiment_keeps_its_width_while_nothing_happens_after_it():
    """It takes two seconds, then two minutes are read until the cache is emptied."""
    history = MemoryHistory()
    history.mark(START, 10.0)
    for second in range(3):
        read_at(history, second, 10.0 + second)
    for half in range(240):
        read_at(history, 2, 12.0 + half / 2)
    assert history.axis_s == 5.0
    history.mark(Mark(label="empty cache"), 132.0)
    read_at(history, 0, 132.0)
    xs, ys = history.curve()
    assert xs == [0.0, 1.0, 2.0, 4.0, 4.0]
    assert ys[-2:] == [2 * MIB, 0.0]
    assert history.curve("upper")[1][0] == 128 * MIB
    assert [(mark.label, mark.at_s) for mark in history.shown_marks] == [("empty cache", 4.0)]


def test_the_axis_begins_with_the_last_experiment_and_grows_with_it():
    history = MemoryHistory()
    for begun_s in (0.0, 100.0):
        history.mark(START, begun_s)
        for second in range(8):
            read_at(history, second, begun_s + second)
    xs, _ = history.curve()
    assert (xs[0], xs[-1]) == (0.0, 7.0)
    assert history.axis_s == 8.0
    for _ in ("a reading", "its segments"):
        history.mark(Mark(label="out of memory", is_failure=True), 107.0)
    assert [mark.at_s for mark in history.shown_marks] == [7.0]


def test_an_old_history_is_let_go():
    history = MemoryHistory()
    for tenth in range(0, 10_000, 5):
        read_at(history, tenth, tenth / 10)
        assert len(history.points) <= 4 * WINDOW_S + 1
    xs, _ = history.curve()
    assert xs[-1] == pytest.approx(WINDOW_S)
