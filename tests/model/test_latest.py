import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.model.latest import Latest


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
