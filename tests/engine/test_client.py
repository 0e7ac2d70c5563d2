import sys
import threading

import psutil
import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    EngineEnded,
    Heartbeat,
    RequestFailed,
)
from gpu_studio.core.messages.run_messages import RunPhaseChanged, RunStopped, RunWorkload
from gpu_studio.engine import client
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.engine.devices import probe_client
from gpu_studio.engine.devices.probe_client import probe_pc
from gpu_studio.process.child_process import ChildProcess
from tests.patience import PATIENCE_S

# SIGABRT as Python tells it; the C runtime of Windows exits with 3.
ABORTED = 3 if sys.platform == "win32" else -6
RUN = RunWorkload(run_id="1", workload="w", device="cpu", size=8, dtype="float32")


@pytest.fixture
def make_engine(monkeypatch):
    monkeypatch.setattr(client, "_MODULE", "tests.engine.scripted_child")
    engines = []

    def make(plan="answer", environment=None):
        monkeypatch.setenv("CHILD_PLAN", plan)
        engines.append(ProcessEngine(environment))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def test_a_script_in_the_users_folder_does_not_stand_for_a_library(
    make_engine, monkeypatch, tmp_path
):
    (tmp_path / "msgspec.py").write_text("raise RuntimeError('not the library')")
    monkeypatch.chdir(tmp_path)
    (event,) = make_engine().run(DescribeEngine())
    assert isinstance(event, EngineDescribed)


def test_an_answer_ends_with_its_last_event_and_the_child_stays(make_engine):
    engine = make_engine()
    (first,) = engine.run(DescribeEngine())
    (second,) = engine.run(DescribeEngine())
    assert isinstance(first, EngineDescribed)
    assert first.pid == second.pid
    # On Windows an environment's python.exe starts the real one and waits for it.
    assert engine.pid in (first.pid, psutil.Process(first.pid).ppid())


def test_the_environment_reaches_the_child(make_engine):
    engine = make_engine(environment=EngineEnvironment(visible_devices="GPU-1234"))
    (described,) = engine.run(DescribeEngine())
    assert described.visible_devices == "GPU-1234"


@pytest.mark.parametrize(("plan", "exit_code"), [("die", 3), ("abort", ABORTED)])
def test_a_death_is_an_event_and_the_next_request_gets_a_fresh_child(
    make_engine, monkeypatch, plan, exit_code
):
    engine = make_engine(plan)
    assert list(engine.run(RUN)) == [EngineEnded(exit_code=exit_code)]
    monkeypatch.setenv("CHILD_PLAN", "answer")
    (described,) = engine.run(DescribeEngine())
    assert psutil.pid_exists(described.pid)


def test_a_death_while_nothing_runs_is_reported_by_the_next_request(make_engine):
    engine = make_engine()
    (described,) = engine.run(DescribeEngine())
    child = psutil.Process(described.pid)
    child.kill()
    psutil.wait_procs([child], timeout=PATIENCE_S)
    (ended,) = engine.run(RUN)
    assert isinstance(ended, EngineEnded)
    assert not ended.stopped
    (fresh,) = engine.run(DescribeEngine())
    assert fresh.pid != described.pid


def test_stop_reaches_the_child_between_two_calls(make_engine):
    engine = make_engine()
    events = engine.run(RUN)
    assert isinstance(next(events), RunPhaseChanged)
    engine.stop()
    assert list(events) == [RunStopped(run_id="1", samples=7)]


def test_abandon_ends_a_child_that_does_not_listen(make_engine):
    engine = make_engine("hang")
    events = engine.run(RUN)
    next(events)
    pid = engine.pid
    engine.stop()
    engine.abandon()
    (ended,) = events
    assert ended.stopped
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("plan", ["garble", "noise"])
def test_an_unreadable_answer_ends_the_child_with_a_sentence(make_engine, plan):
    engine = make_engine(plan)
    (failed,) = engine.run(DescribeEngine())
    assert failed.failure.kind is FailureKind.ENGINE_ENDED
    assert failed.failure.fatal


def test_half_a_line_is_the_death_it_comes_from(make_engine):
    assert list(make_engine("half").run(DescribeEngine())) == [EngineEnded(exit_code=4)]


def test_a_heartbeat_is_heard_by_the_window_and_not_by_the_terminal(make_engine):
    (described,) = make_engine("beat").run(DescribeEngine())
    assert isinstance(described, EngineDescribed)
    engine = make_engine("beat")
    engine.send(DescribeEngine())
    result = engine.events()
    assert next(result) == Heartbeat()
    assert any(isinstance(event, EngineDescribed) for event in result)


def test_after_a_fatal_failure_the_child_is_gone(make_engine, monkeypatch):
    engine = make_engine("fatal")
    (failed,) = engine.run(RUN)
    assert isinstance(failed, RequestFailed)
    assert engine.pid is None
    monkeypatch.setenv("CHILD_PLAN", "answer")
    assert isinstance(next(engine.run(DescribeEngine())), EngineDescribed)


def test_close_from_another_thread_ends_a_running_answer(make_engine):
    engine = make_engine("hang")
    events = engine.run(RUN)
    next(events)
    pid = engine.pid
    closer = threading.Thread(target=engine.close)
    closer.start()
    (ended,) = events
    closer.join()
    assert ended.stopped
    assert not psutil.pid_exists(pid)
    assert list(engine.run(RUN)) == [EngineEnded(exit_code=None, stopped=True)]


def test_a_child_that_cannot_be_started_is_a_sentence(make_engine, monkeypatch):
    engine = make_engine()
    for name in ("executable", "_base_executable"):  # on Windows, the latter is started
        monkeypatch.setattr(f"sys.{name}", "/nowhere/python")
    (failed,) = engine.run(DescribeEngine())
    assert "could not start" in failed.failure.message


def test_the_child_of_a_probe_that_is_given_up_is_killed_before_it_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(probe_client, "_MODULE", "tests.engine.child_with_family")
    exit_codes = []
    end = ChildProcess.end

    def noted_end(child: ChildProcess, timeout_s: float = PATIENCE_S) -> int | None:
        exit_codes.append(end(child, PATIENCE_S))
        return exit_codes[-1]

    monkeypatch.setattr(ChildProcess, "end", noted_end)
    assert probe_pc(is_over=lambda: True).error
    assert exit_codes[-1] not in (0, None)  # asked, it ends with 0
