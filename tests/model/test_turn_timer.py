"""A turn of the event loop later: once for each start, and not after the owner's end."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject

from gpu_studio.model.turn_timer import turn_timer


def test_it_acts_a_turn_later_and_once_for_each_start(qtbot):
    owner, acted = QObject(), []
    timer = turn_timer(owner, lambda: acted.append(len(acted)))
    timer.start()
    timer.start()
    assert acted == []
    qtbot.waitUntil(lambda: bool(acted))
    QCoreApplication.processEvents()
    assert acted == [0]
    timer.start()
    qtbot.waitUntil(lambda: len(acted) == 2)


def test_it_is_silent_once_its_owner_is_gone(qtbot):
    owner, acted = QObject(), []
    turn_timer(owner, lambda: acted.append(1)).start()
    owner.deleteLater()
    with qtbot.waitSignal(owner.destroyed):
        QCoreApplication.sendPostedEvents(owner, QEvent.Type.DeferredDelete)
    QCoreApplication.processEvents()
    assert acted == []
