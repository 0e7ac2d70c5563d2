"""A device's memory over time, on a clock that waits while nothing happens, and as a tank."""

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.model.memory.engine_memory import (
    WINDOW_S,
    EngineMemory,
    Mark,
    MemoryHistory,
    PcMemory,
)
from tests.fakes.memory_answers import memory_read
from tests.fakes.pc import gt_1030_card
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


CARD = gt_1030_card(torch_index=0)


class Listed:
    """Stands in for the sensors: one process on the card."""

    def __init__(self, pid, mib):
        self.listed = (GpuProcess(pid=pid, name="python", memory_bytes=mib * MIB),)

    def processes(self, _device):
        return self.listed


@pytest.fixture
def memory(qapp):
    memory = EngineMemory(lambda: 100.0, lambda _address: CARD.identity, {})
    memory.pid = 7
    return memory


def receive(memory, reserved, at_s):
    memory._receive(memory_read(reserved=reserved, taken_at_s=at_s))


def context_of(tanks, memory):
    read = memory.latest(CARD.identity)
    tank = tanks.of(read, CARD, memory.pid)
    return {part.key: part.size_bytes // MIB for part in tank.parts}.get("context")


def test_the_context_is_what_the_process_has_besides_what_pytorch_reserved(memory):
    tanks = PcMemory(Listed(7, 512 + 90), memory, memory)
    receive(memory, 512, 0.0)
    assert context_of(tanks, memory) is None
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) == 90
    receive(memory, 768, 1.3)  # the driver has not told of this yet
    assert context_of(tanks, memory) == 90


def test_what_the_driver_reported_the_engine_itself_counts_before_all_else(memory):
    """Of the same moment, and to the byte: at the end of an experiment too short to be listed."""
    tanks = PcMemory(Listed(7, 512 + 90), memory, memory)
    read = memory_read(reserved=512, engine_bytes=(512 + 87) * MIB)
    memory._receive(read)
    assert context_of(tanks, memory) == 87
    tanks.learn(CARD.identity, CARD, memory)
    assert context_of(tanks, memory) == 87
