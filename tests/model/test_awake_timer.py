"""A deadline that a sleep of the PC does not use up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from gpu_studio.model.awake_timer import AwakeTimer

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


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
