"""Processes that train together, started by torchrun and ended with their owner."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import psutil
import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.run_messages import SamplesMeasured
from gpu_studio.core.protocol import encode
from gpu_studio.engine import replica_group
from gpu_studio.engine.replica import Share
from gpu_studio.engine.replica_group import ReplicaGroup, backends_for
from tests.engine.answers import run_request
from tests.engine.engine_child import EngineChild
from tests.engine.workloads.data_parallel.cases import PROCESSES
from tests.patience import outliving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


def test_a_process_that_dies_ends_the_group_with_a_sentence(group: ReplicaGroup):
    """The last one that uses this group."""
    processes = everyone(group)
    processes[-1].kill()

    def go_on() -> None:
        for _ in range(1000):
            group.step_s(2)

    with pytest.raises(StudioError, match=r"\(gloo\) ended"):
        go_on()
    assert outliving(processes[1:]) == []


def test_processes_end_with_torchrun():
    one = ReplicaGroup(["cpu"], 16)
    launcher, *replicas = everyone(one)
    launcher.kill()
    assert outliving(replicas) == []
    one.close()


def test_a_group_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replica_group, "_LONGEST_START_S", 0.2)
    with pytest.raises(StudioError, match=r"did not answer within 0 s"):
        ReplicaGroup(["cpu"], 16)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_processes_end_with_a_killed_engine(tmp_path: Path):
    engine = EngineChild(tmp_path / "log")
    try:
        options = {"way": PROCESSES, "processes": "2"}
        request = run_request(workload="data_parallel", size=16, options=options, budget_s=3600.0)
        engine.send(encode(request))
        while not isinstance(engine.receive(), SamplesMeasured):
            pass
        below = psutil.Process(engine.process.pid).children(recursive=True)
        assert len(below) >= 3
        engine.process.kill()
        assert outliving(below) == []
    finally:
        engine.kill()


def test_cards_talk_by_nccl_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    assert backends_for("cuda:0") == ("nccl", "gloo")
    assert backends_for("cpu") == ("gloo",)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    assert backends_for("cuda:0") == ("gloo",)
