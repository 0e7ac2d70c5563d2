"""An engine that dies, or does not start, under the window's one conversation with it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import MemoryRead, ReadMemory
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunWorkload
from gpu_studio.model.engine_session import EngineState
from tests.fakes.descriptions import described
from tests.fakes.run_answers import started
from tests.model.session_watcher import (
    Watcher,
    read_memory,
    run_request,
    start,
    wait_answered,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.messages.message import Event
    from gpu_studio.model.engine_session import EngineSession
    from tests.fakes.scripted_engine import Engines, ScriptedEngine

CRASH = EngineEnded(exit_code=-11)


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (CRASH, "crashed (signal 11)"),
        (EngineEnded(exit_code=-9), "ran out of memory"),
        (
            RunFailed(
                run_id="1",
                failure=Failure(FailureKind.CUDA_ERROR, "An illegal memory access.", fatal=True),
            ),
            "illegal memory access",
        ),
    ],
)
def test_a_death_is_reported_and_a_fresh_engine_comes(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    ending: Event,
    sentence: str,
) -> None:
    engines.scripts[RunWorkload] = [started(run_request()), ending]
    start(qtbot, session)
    request, waiting = run_request(), ReadMemory(device="cpu")
    engines.scripts[ReadMemory] = read_memory
    session.submit(request)
    session.submit(waiting)
    qtbot.waitUntil(lambda: watcher.types(waiting) == [MemoryRead])
    assert watcher.answer(request)[-1] == ending
    assert len(watcher.losses) == 1
    assert sentence in watcher.losses[0]
    assert watcher.descriptions == 2
    # The new engine is described before it serves what waited.
    assert [type(request) for request in engines.requests] == [
        DescribeEngine, RunWorkload, DescribeEngine, ReadMemory,
    ]  # fmt: skip


def test_a_failure_that_is_not_fatal_keeps_the_engine(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    failure = Failure(FailureKind.TOO_LARGE, "Too large.", traceback_text="Traceback …")
    engines.scripts[RunWorkload] = [RunFailed(run_id="1", failure=failure)]
    start(qtbot, session)
    request = run_request()
    session.submit(request)
    wait_answered(qtbot, watcher, request)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
    assert (watcher.losses, watcher.descriptions) == ([], 1)


def test_three_deaths_in_a_row_end_the_tries_until_someone_asks(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[DescribeEngine] = [EngineEnded(exit_code=1)]
    waiting = run_request("waiting")
    session.submit(waiting)
    session.start()
    qtbot.waitUntil(lambda: session.state is EngineState.FAILED)
    assert engines.requests == [DescribeEngine()] * 3
    assert len(watcher.losses) == 3
    (refusal,) = watcher.answer(waiting)
    assert isinstance(refusal, RequestFailed)
    assert "exit code 1" in refusal.failure.message

    late = run_request("late")
    session.submit(late)
    assert watcher.answer(late) == []
    qtbot.waitUntil(lambda: watcher.types(late) == [RequestFailed])
    assert session.state is EngineState.FAILED

    session.restart()
    qtbot.waitUntil(lambda: session.state is EngineState.FAILED)
    assert len(watcher.losses) == 6

    engines.scripts[DescribeEngine] = [described()]
    start(qtbot, session)
    again = run_request("again")
    session.submit(again)
    wait_answered(qtbot, watcher, again)
    assert watcher.types(again)[-1] is RunFinished


def test_deaths_with_work_between_them_never_end_the_tries(
    qtbot: QtBot, session: EngineSession, watcher: Watcher, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = [CRASH]
    start(qtbot, session)
    for index in range(4):
        session.submit(run_request(str(index)))
    qtbot.waitUntil(lambda: len(watcher.losses) == 4)
    qtbot.waitUntil(lambda: session.state is EngineState.READY)


@pytest.mark.parametrize("had_one_before", [False, True])
def test_an_engine_that_cannot_say_what_it_is_is_none(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    had_one_before: bool,
) -> None:
    if had_one_before:
        start(qtbot, session)
    failure = Failure(FailureKind.ENGINE_ENDED, "The engine could not be started: no such file.")
    engines.scripts[DescribeEngine] = [RequestFailed(failure=failure)]
    if had_one_before:
        session.restart()
    else:
        session.start()
    qtbot.waitUntil(lambda: session.state is EngineState.FAILED)
    assert session.description is None
    assert watcher.losses == [failure.message]


def test_an_exception_in_an_engine_is_an_answer(
    qtbot: QtBot,
    session: EngineSession,
    watcher: Watcher,
    engines: Engines,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Event]:
        yield started(request)
        raise ZeroDivisionError

    engines.scripts[RunWorkload] = broken
    start(qtbot, session)
    request = run_request()
    with caplog.at_level(logging.CRITICAL):
        session.submit(request)
        wait_answered(qtbot, watcher, request)
    failure = watcher.answer(request)[-1].failure
    assert failure.message == "ZeroDivisionError"
    qtbot.waitUntil(lambda: session.state is EngineState.READY)
