import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread, Slot
from pytestqt.qtbot import QtBot

from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.model.latest import Latest
from gpu_studio.model.worker import Task, Worker
from tests.patience import PATIENCE_MS, PATIENCE_S


class Receiver(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.values: list[object] = []
        self.threads: set[QThread] = set()

    @Slot(object)
    def take(self, value: object) -> None:
        self.values.append(value)
        self.threads.add(QThread.currentThread())


def test_values_come_in_order_to_the_receivers_thread(qtbot: QtBot) -> None:
    made_in: list[QThread] = []

    def values() -> Iterator[int]:
        made_in.append(QThread.currentThread())
        yield from range(500)

    worker, receiver = Worker(values), Receiver()
    worker.value_produced.connect(receiver.take)
    with qtbot.waitSignal(worker.finished):
        worker.start()
    assert receiver.values == list(range(500))
    assert receiver.threads == {receiver.thread()}
    assert made_in != [receiver.thread()]
    worker.wait()


def test_an_error_becomes_a_failure_and_ends_the_stream(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def values() -> Iterator[int]:
        yield 1
        raise ValueError("unforeseen")

    worker, receiver = Worker(values), Receiver()
    worker.value_produced.connect(receiver.take)
    with (
        qtbot.waitSignal(worker.failure_raised) as raised,
        qtbot.waitSignal(worker.finished),
    ):
        worker.start()
    (failure,) = raised.args
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.message) == (FailureKind.INTERNAL, "ValueError: unforeseen")
    assert "Traceback" in failure.traceback_text
    assert receiver.values == [1]
    assert "ended with an error" in caplog.text
    worker.wait()


def test_interruption_ends_it_at_the_next_value_and_closes_the_generator(qtbot: QtBot) -> None:
    produced, closed = threading.Event(), threading.Event()
    more = threading.Event()

    def values() -> Iterator[int]:
        try:
            yield 1
            produced.set()
            assert more.wait(PATIENCE_S)
            yield 2
            yield 3
        finally:
            closed.set()

    worker, receiver = Worker(values), Receiver()
    worker.value_produced.connect(receiver.take)
    worker.start()
    assert produced.wait(PATIENCE_S)
    worker.requestInterruption()
    with qtbot.waitSignal(worker.finished):
        more.set()
    assert receiver.values == [1]
    assert worker.wait(PATIENCE_MS)
    assert closed.is_set()


def test_an_expected_failure_is_a_sentence_and_is_not_logged(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    def values() -> Iterator[int]:
        yield 1
        raise StudioError(FailureKind.FILE_REFUSED, "It is no recording.")

    worker = Worker(values)
    with qtbot.waitSignal(worker.failure_raised) as raised, qtbot.waitSignal(worker.finished):
        worker.start()
    assert raised.args == [Failure(FailureKind.FILE_REFUSED, "It is no recording.")]
    assert caplog.text == ""
    worker.wait()


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


@pytest.fixture
def latest(qapp: object) -> Iterator[Latest]:
    asking = Latest()
    yield asking
    asking.close()


@pytest.fixture
def answers(latest: Latest) -> list[object]:
    """What was answered, and the messages of failures."""
    found: list[object] = []
    latest.succeeded.connect(found.append)
    latest.failed.connect(lambda failure: found.append(failure.message))
    return found


def test_an_earlier_question_is_told_that_it_is_over_and_never_answered(
    latest: Latest, answers: list[object], qtbot: QtBot
) -> None:
    begun = threading.Event()

    def until_over(is_over: Callable[[], bool]) -> str:
        begun.set()
        while not is_over():
            pass
        return "old"

    latest.ask(until_over)
    qtbot.waitUntil(begun.is_set)
    latest.ask(lambda _is_over: "between")
    latest.ask(lambda _is_over: "new")
    assert latest.is_busy
    with qtbot.waitSignal(latest.idled):
        pass
    assert answers == ["new"]
    assert not latest.is_busy


def test_what_goes_wrong_is_said_and_a_dropped_question_says_nothing(
    latest: Latest, answers: list[object], qtbot: QtBot
) -> None:
    def refuse(message: str, _is_over: Callable[[], bool]) -> None:
        raise StudioError(FailureKind.FILE_REFUSED, message)

    latest.ask(partial(refuse, "dropped"))
    latest.drop()
    qtbot.waitUntil(lambda: not latest.is_busy)
    with qtbot.waitSignal(latest.failed):
        latest.ask(partial(refuse, "no"))
    assert answers == ["no"]


def test_while_somebody_types_nothing_is_asked(qtbot: QtBot) -> None:
    typed = Latest(pause_ms=50)
    asked: list[str] = []
    for word in ("1", "10", "100"):
        typed.ask(lambda _is_over, word=word: asked.append(word))
    with qtbot.waitSignal(typed.succeeded):
        pass
    assert asked == ["100"]
    typed.close()
