import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine import replica, replica_group
from gpu_studio.engine.replica import Share
from gpu_studio.engine.replica_group import ReplicaGroup, backends_for
from gpu_studio.engine.workloads import replicated
from tests.engine.answers import ask, run_request
from tests.engine.workloads.data_parallel.cases import PROCESSES
from tests.patience import outliving


@pytest.fixture(scope="module")
def group() -> Iterator[ReplicaGroup]:
    with contextlib.closing(ReplicaGroup(["cpu", "cpu"], 16)) as one:
        yield one


def everyone(group: ReplicaGroup) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in group.pids]


def test_a_group_learns_what_one_process_would(group: ReplicaGroup):
    answer = group.check(2)
    assert answer.are_same
    assert answer.error < 1e-4
    assert answer.shares == (Share("cpu", 8), Share("cpu", 8))
    assert group.check(1).shares == (Share("cpu", 16),)
    assert group.backend == "gloo"
    assert group.start_s > 0


def test_a_group_times_its_steps_and_some_of_it_may_work(group: ReplicaGroup):
    for processes in (1, 2, 1, 2):
        assert group.step_s(processes) > 0


def test_a_group_can_be_reached_from_this_pc_alone(group: ReplicaGroup):
    listening = [
        connection.laddr.ip
        for process in everyone(group)
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}  # gloo's, between the processes


def test_a_run_checks_and_times_the_same_processes(
    group: ReplicaGroup, monkeypatch: pytest.MonkeyPatch
):
    """The last one that uses this group: the run ends it."""
    started: list[tuple[Any, int]] = []
    processes = everyone(group)
    monkeypatch.setattr(
        replicated, "ReplicaGroup", lambda *asked: (started.append(asked), group)[1]
    )
    options = {"way": PROCESSES, "processes": "2"}
    result = ask(run_request(workload="data_parallel", size=16, options=options))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True, result.verification
    assert result.calls_per_sample == 1
    assert result.details.curves["sharers"] == (1.0, 2.0)
    assert "8 on cpu, 8 on cpu" in result.details.findings[0]
    assert "by gloo" in result.details.findings[1]
    assert "2 processes " in result.details.findings[2]
    assert started == [(["cpu", "cpu"], 16)]
    # torchrun and its two; on Windows, also what starts the two, and their console.
    assert len(processes) == (6 if sys.platform == "win32" else 3)
    assert outliving(processes) == []
    assert not Path(group._folder.name).exists()


def test_a_group_without_torchrun_ends_with_a_sentence():
    with contextlib.closing(ReplicaGroup(["cpu"], 16)) as one:
        processes = everyone(one)
        processes.pop(0).kill()

        def go_on() -> None:
            for _ in range(1000):
                one.step_s(1)

        with pytest.raises(StudioError, match=r"\(gloo\) ended"):
            go_on()
        assert outliving(processes) == []


def test_a_group_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replica_group, "_LONGEST_START_S", 0.2)
    with pytest.raises(StudioError, match=r"did not answer within 0 s"):
        ReplicaGroup(["cpu"], 16)


def test_cards_talk_by_nccl_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    assert backends_for("cuda:0") == ("nccl", "gloo")
    assert backends_for("cpu") == ("gloo",)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    assert backends_for("cuda:0") == ("gloo",)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the events in order; another process took 7 s for a step."""
    order: list[str] = []

    def all_reduce(tensor: torch.Tensor, op: object = None, group: object = None) -> None:
        order.append("exchange")
        if op is torch.distributed.ReduceOp.MAX:
            tensor.clamp_(min=7.0)

    def clock() -> float:
        order.append("clock")
        return float(len(order))

    monkeypatch.setattr(replica.dist, "all_reduce", all_reduce)
    monkeypatch.setattr(replica, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(replica.Team, "_step", lambda team: order.append("step"))
    monkeypatch.setattr(replica.Team, "_share_cores", lambda team: None)
    return order


def test_the_clock_sees_the_step_alone(seen: list[str]):
    team = object.__new__(replica.Team)
    team._group, team._device = None, torch.device("cpu")
    answer = team.timed_step()
    first = seen.index("clock")
    last = len(seen) - 1 - seen[::-1].index("clock")
    assert seen[first : last + 1] == ["clock", "step", "clock"]
    assert seen[0] == "exchange"  # all have met before
    # The step is over when the slowest process has done it, not when the first has.
    assert answer.elapsed_s == 7.0
