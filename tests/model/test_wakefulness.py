from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from gpu_studio.model.awake_timer import AwakeTimer
from gpu_studio.model.pages import CHECK, RACE, Wakefulness


class Blocker:
    def __init__(self, *, is_allowed: bool = True) -> None:
        self.is_held = False
        self._is_allowed = is_allowed

    def hold(self) -> None:
        assert not self.is_held, "once is enough"
        self.is_held = self._is_allowed

    def release(self) -> None:
        assert self.is_held or not self._is_allowed
        self.is_held = False


def test_two_works_keep_it_awake_once() -> None:
    blocker = Blocker()
    awake = Wakefulness(blocker)
    awake.need(CHECK, needed=True)
    awake.need(RACE, needed=True)
    awake.need(CHECK, needed=False)
    assert awake.is_kept
    awake.need(RACE, needed=False)
    awake.need(RACE, needed=False)
    assert not awake.is_kept
    assert not blocker.is_held


def test_it_is_not_claimed_where_the_system_refuses() -> None:
    for blocker in (None, Blocker(is_allowed=False)):
        awake = Wakefulness(blocker)
        awake.need(CHECK, needed=True)
        assert not awake.is_kept


def test_a_deadline_ends_once(qtbot: QtBot) -> None:
    owner = QObject()
    patience = AwakeTimer(owner, 20)
    with qtbot.waitSignal(patience.ended):
        patience.start()
    assert not patience.is_active


def test_a_window_that_stood_still_has_missed_one_tick() -> None:
    owner = QObject()
    patience, ended = AwakeTimer(owner, 60_000), []
    patience.ended.connect(lambda: ended.append(1))
    patience.start()
    assert patience._timer.interval() <= 1000
    for _ in range(59):  # however late each of them is
        patience._tick()
    assert not ended
    patience._tick()
    assert ended
    patience.start(5)
    patience.stop()
    assert not patience.is_active
