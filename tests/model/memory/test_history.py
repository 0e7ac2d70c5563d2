"""What a device's memory held over time."""

from __future__ import annotations

import math

from gpu_studio.model.memory.engine_memory import WINDOW_S, Mark, MemoryHistory
from tests.fakes.memory_answers import (
    memory_read,
)
from tests.model.memory.looks import (
    MIB,
)


def test_a_time_without_readings_is_a_gap():
    history = MemoryHistory()
    for at_s in (0.0, 0.5, 60.0, 60.5):
        history.add(memory_read(allocated=64, reserved=128), at_s)
    xs, ys = history.curve(0.0)
    assert xs == [0.0, 0.5, 0.5, 60.0, 60.5]
    assert [math.isnan(y) for y in ys] == [False, False, True, False, False]
    assert history.curve(0.0, "upper")[1][0] == 128 * MIB


def test_a_curve_begins_with_what_still_held():
    history = MemoryHistory()
    for second in range(10):
        history.add(memory_read(allocated=second, reserved=128), float(second))
    assert history.curve(7.5)[0] == [7.0, 8.0, 9.0]


def test_an_old_history_is_let_go():
    history = MemoryHistory()
    for tenth in range(0, 10_000, 5):
        history.add(memory_read(allocated=tenth, reserved=128), tenth / 10)
        assert len(history.points) <= 4 * WINDOW_S + 1
    assert history.points[-1].at_s == 999.5
    assert history.since(900.2)[0].at_s == 900.0
    assert history.since(999.5 - WINDOW_S)[0].at_s <= 999.5 - WINDOW_S


def test_a_loop_that_frees_at_every_step_is_one_mark_a_second():
    history = MemoryHistory()
    for tenth in range(25):
        history.mark(Mark(at_s=tenth / 10, label="freed"))
    assert [mark.at_s for mark in history.marks] == [0.0, 1.0, 2.0]
    history.mark(Mark(at_s=2.1, label="out of memory", is_failure=True))
    assert history.marks[-1].is_failure
