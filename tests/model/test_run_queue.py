from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.model.engine_session import EngineSession
from gpu_studio.model.run_queue import Plan, QueueStep, RunQueue, WorkState
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Engines, ScriptedEngine
from tests.model.session_watcher import hold, run_request, start, wait_paused


def in_turn(*names: str) -> Plan:
    waiting = [Run(run_request(name)) for name in names]

    def rule(_runs: Sequence[Run], _last: Event | None) -> QueueStep | None:
        run = waiting.pop(0) if waiting else None
        return QueueStep(run.request, (run,)) if run is not None else None

    return rule


@pytest.fixture
def queue(qapp: object) -> RunQueue:
    return RunQueue()


@pytest.fixture
def ready(qtbot: QtBot, session: EngineSession) -> EngineSession:
    start(qtbot, session)
    return session


def asked(engines: Engines) -> list[str]:
    return [one.run_id for one in engines.requests if isinstance(one, RunWorkload)]


def names(queue: RunQueue) -> list[tuple[str, RunState]]:
    return [(run.request.run_id, run.state) for run in queue.runs]


def test_the_steps_of_a_plan_run_one_after_the_other(
    qtbot: QtBot, queue: RunQueue, ready: EngineSession, engines: Engines
) -> None:
    begun: list[tuple[str, WorkState]] = []
    ended: list[tuple[str, object]] = []
    queue.step_begun.connect(lambda step: begun.append((step.request.run_id, queue.state)))
    queue.step_ended.connect(lambda step: ended.append((step.request.run_id, queue.step)))
    with qtbot.waitSignal(queue.finished):
        queue.start(in_turn("a", "b"), ready)
    assert asked(engines) == ["a", "b"]
    assert begun == [("a", WorkState.RUNNING), ("b", WorkState.RUNNING)]
    assert ended == [("a", None), ("b", None)]
    assert names(queue) == [("a", RunState.FINISHED), ("b", RunState.FINISHED)]
    assert isinstance(queue.last, RunFinished)
    assert (queue.state, queue.is_stopped) == (WorkState.IDLE, False)


def test_the_next_step_depends_on_the_results_so_far(
    qtbot: QtBot, queue: RunQueue, ready: EngineSession, engines: Engines
) -> None:
    def rule(runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        assert (last is None) is (len(runs) == 0)
        sizes = [run.result.size for run in runs if run.result is not None]
        if len(sizes) == 3:
            return None
        run = Run(run_request(str(len(sizes)), size=2 * max(sizes, default=32)))
        return QueueStep(run.request, (run,))

    with qtbot.waitSignal(queue.finished):
        queue.start(rule, ready)
    assert [run.request.size for run in queue.runs] == [64, 128, 256]


def test_devices_take_turns_and_a_run_of_two_steps_is_kept_once(
    qtbot: QtBot, queue: RunQueue, ready: EngineSession, engines: Engines
) -> None:
    """A plan may interleave: A B B A."""
    one, other = Run(run_request("a")), Run(run_request("b"))
    rounds = iter((one, other, other, one))

    def rule(_runs: Sequence[Run], _last: Event | None) -> QueueStep | None:
        run = next(rounds, None)
        return QueueStep(run.request, (run,)) if run is not None else None

    changed: list[Run] = []
    queue.event_received.connect(lambda _event, runs: changed.extend(runs))
    with qtbot.waitSignal(queue.finished):
        queue.start(rule, ready)
    assert asked(engines) == ["a", "b", "b", "a"]
    assert queue.runs == [one, other]
    events = len(list(run_events(one.request)))
    assert changed == [one] * events + [other] * events, "a run that is over does not change"


def test_a_stop_keeps_the_results_so_far_and_begins_nothing(
    qtbot: QtBot, queue: RunQueue, ready: EngineSession, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    assert not queue.stop()
    queue.start(in_turn("a", "b", "c"), ready)
    wait_paused(qtbot, engines)
    engines.latest.go()
    qtbot.waitUntil(lambda: asked(engines) == ["a", "b"])
    wait_paused(qtbot, engines)
    with qtbot.waitSignal(queue.finished):
        assert queue.stop()
        assert queue.state is WorkState.STOPPING
        assert not queue.stop()
    assert names(queue) == [("a", RunState.FINISHED), ("b", RunState.STOPPED)]
    assert queue.is_stopped
    assert asked(engines) == ["a", "b"]


@pytest.mark.parametrize("goes_on", [True, False])
def test_the_plan_decides_whether_it_goes_on_after_a_death(
    qtbot: QtBot, queue: RunQueue, ready: EngineSession, engines: Engines, goes_on: bool
) -> None:
    def dying(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        if request.run_id == "a":
            yield EngineEnded(exit_code=-11)
        yield from run_events(request)

    engines.scripts[RunWorkload] = dying
    steps = in_turn("a", "b")

    def rule(runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        return steps(runs, last) if goes_on or last is None else None

    with qtbot.waitSignal(queue.finished):
        queue.start(rule, ready)
    assert names(queue)[0] == ("a", RunState.FAILED)
    assert names(queue)[1:] == ([("b", RunState.FINISHED)] if goes_on else [])
    qtbot.waitUntil(lambda: ready.is_free)


def test_a_second_plan_is_refused_and_a_later_one_starts_anew(
    qtbot: QtBot, queue: RunQueue, ready: EngineSession, engines: Engines
) -> None:
    with qtbot.waitSignal(queue.finished):
        queue.start(in_turn("a"), ready)
        queue.start(in_turn("refused"), ready)
    with qtbot.waitSignal(queue.finished):
        queue.start(in_turn("b"), ready)
    assert asked(engines) == ["a", "b"]
    assert names(queue) == [("b", RunState.FINISHED)]
