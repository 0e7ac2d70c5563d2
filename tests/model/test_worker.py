from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QThread, Slot

from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.model.worker import Worker
from tests.patience import PATIENCE_MS, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest
    from pytestqt.qtbot import QtBot


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


def test_a_slow_start_is_slow_in_the_thread(qtbot: QtBot) -> None:
    gate = threading.Event()

    def values() -> list[str]:
        assert gate.wait(PATIENCE_S)
        return ["late"]

    worker, receiver = Worker(values), Receiver()
    worker.value_produced.connect(receiver.take)
    worker.start()
    assert receiver.values == []
    with qtbot.waitSignal(worker.finished):
        gate.set()
    assert receiver.values == ["late"]
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
