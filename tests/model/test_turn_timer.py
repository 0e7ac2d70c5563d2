"""Work that takes long has a turn of the event loop to itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QObject

from gpu_studio.model import turn_timer
from gpu_studio.model.turn_timer import TurnTimer, turn_clock


class Diary(QObject):
    """Notes what is done in each turn; the time stands still meanwhile, but for what it does."""

    def __init__(self, monkeypatch) -> None:
        super().__init__()
        self.now_s = 0.0
        self.turns: list[list[str]] = [[]]
        monkeypatch.setattr(turn_timer, "time", SimpleNamespace(perf_counter=lambda: self.now_s))
        QAbstractEventDispatcher.instance().awake.connect(self.begin)
        turn_clock()._begin()  # with this clock

    def begin(self) -> None:
        self.turns.append([])

    def timer(self, name: str, worked_s: float) -> TurnTimer:
        timer = TurnTimer(self)

        def work() -> None:
            timer.stop()
            self.turns[-1].append(name)
            self.now_s += worked_s

        timer.timeout.connect(work)
        timer.start()
        return timer

    @property
    def done(self) -> list[list[str]]:
        return [turn for turn in self.turns if turn]


@pytest.fixture
def diary(qtbot, monkeypatch):
    return Diary(monkeypatch)


def test_two_that_take_long_end_in_two_turns(qtbot, diary):
    timers = [diary.timer(name, 0.004) for name in ("first", "second")]
    qtbot.waitUntil(lambda: len(diary.done) == 2)
    assert diary.done == [["first"], ["second"]]
    assert not any(timer.is_active for timer in timers)


def test_a_pc_whose_turns_all_begin_late_keeps_nothing_waiting(qtbot, diary, monkeypatch):
    monkeypatch.setattr(turn_timer, "_LATE_S", -1.0)
    timer = diary.timer("work", 0.0)
    qtbot.waitUntil(lambda: diary.done == [["work"]])
    assert not timer.is_active
