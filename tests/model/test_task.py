"""One piece of work on a thread of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread

from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.model.worker import Task
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


class Owner(QObject):
    """Notes what a task tells, in which thread, and in which order."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []
        self.threads: set[QThread] = set()

    def begin(self, work: object) -> Task:
        task = Task(work, self)
        task.succeeded.connect(self._take)
        task.failed.connect(self._take)
        task.finished.connect(self._finish)
        return task

    def _take(self, what: object) -> None:
        self.told.append(what)
        self.threads.add(QThread.currentThread())

    def _finish(self) -> None:
        self.told.append("finished")


def test_a_result_comes_to_the_owners_thread_and_the_task_goes(qtbot: QtBot) -> None:
    owner, made_in = Owner(), []

    def work() -> int:
        made_in.append(QThread.currentThread())
        return 42

    task = owner.begin(work)
    with qtbot.waitSignal(task.finished):
        task.start()
    assert owner.told == [42, "finished"]
    assert owner.threads == {owner.thread()}
    assert made_in != [owner.thread()]
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert not shiboken6.isValid(task)


def test_a_failure_is_reported_in_place_of_a_result(qtbot: QtBot) -> None:
    owner = Owner()

    def work() -> int:
        raise StudioError(FailureKind.FILE_REFUSED, "It is no recording.")

    task = owner.begin(work)
    with qtbot.waitSignal(task.finished):
        task.start()
    assert owner.told == [Failure(FailureKind.FILE_REFUSED, "It is no recording."), "finished"]


def test_its_owner_can_wait_for_it_within_limits(qtbot: QtBot) -> None:
    owner, gate = Owner(), threading.Event()
    task = owner.begin(lambda: gate.wait(PATIENCE_S))
    task.start()
    assert not task.wait(1)
    gate.set()
    assert task.wait()
