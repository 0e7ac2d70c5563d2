from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import RunFinished, SamplesMeasured, encode
from gpu_studio.engine import replica_group
from gpu_studio.engine.replica import Answer, Share
from gpu_studio.engine.replica_group import ReplicaGroup, backends_for
from gpu_studio.engine.workloads import replicated
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.data_parallel import DataParallel
from gpu_studio.engine.workloads.replicated import (
    GroupCall,
    ModuleCall,
    devices_of,
    does_it_pay,
    scaling_of,
)
from tests.engine.answers import ask, run_request
from tests.engine.engine_child import EngineChild

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU = torch.device("cpu")
WORKLOAD = DataParallel()
PROCESSES = "DistributedDataParallel"


def case_of(size: int = 16, device: torch.device = CPU, **options: str) -> Case:
    return make_case(WORKLOAD.description, device, size, options=options)


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
        assert 0 < group.step_s(processes) < 10


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
    assert psutil.wait_procs(processes[1:], timeout=10)[1] == []


def test_processes_end_with_torchrun():
    one = ReplicaGroup(["cpu"], 16)
    launcher, *replicas = everyone(one)
    launcher.kill()
    assert psutil.wait_procs(replicas, timeout=10)[1] == []
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
        assert psutil.wait_procs(below, timeout=15)[1] == []
    finally:
        engine.kill()


def test_a_run_checks_and_times_the_same_processes(monkeypatch: pytest.MonkeyPatch):
    started: list[ReplicaGroup] = []
    processes: list[psutil.Process] = []

    def noted(devices: Any, size: int) -> ReplicaGroup:
        started.append(ReplicaGroup(devices, size))
        processes.extend(everyone(started[-1]))
        return started[-1]

    monkeypatch.setattr(replicated, "ReplicaGroup", noted)
    options = {"way": PROCESSES, "processes": "2"}
    result = ask(run_request(workload="data_parallel", size=16, options=options))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True, result.verification
    assert result.calls_per_sample == 1
    assert result.curves["sharers"] == (1.0, 2.0)
    assert result.findings[0] == "The batch was split: 8 on cpu, 8 on cpu."
    assert "they talk by gloo" in result.findings[1]
    assert "2 processes learn from" in result.findings[2]
    (group,) = started
    assert len(processes) == 3  # torchrun and its two
    assert psutil.wait_procs(processes, timeout=10)[1] == []
    assert not Path(group._folder.name).exists()


class Fake:
    """A group without processes."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer or Answer(are_same=True, error=0.0)
        self.is_running = True
        self.closed = 0

    def check(self, processes: int) -> Answer:
        return self.answer

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(are_same=False, error=0.0), "copies of the network differ"),
        (Answer(are_same=True, error=0.01), "off by 1.0e-02"),
        (Answer(are_same=True, error=None), "not a number"),
    ],
)
def test_a_group_that_learns_wrong_is_not_verified(
    answer: Answer, words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(replicated, "ReplicaGroup", lambda devices, size: Fake(answer))
    check = WORKLOAD.verify(case_of(way=PROCESSES, processes="2"))
    assert check.verified is False
    assert words in check.finding
    replicated._kept.end()


def test_a_group_that_waits_is_for_the_same_call_alone(monkeypatch: pytest.MonkeyPatch):
    made: list[Fake] = []

    def make(devices: Any, size: int) -> Fake:
        made.append(Fake())
        return made[-1]

    monkeypatch.setattr(replicated, "ReplicaGroup", make)
    options = {"way": PROCESSES, "processes": "2"}
    WORKLOAD.verify(case_of(16, **options))
    assert (len(made), made[0].closed) == (1, 0)
    call = GroupCall(case_of(32, **options))  # another batch: the one that waits is ended
    assert (len(made), made[0].closed) == (2, 1)
    call.keep()
    call.close()
    assert made[1].closed == 0
    again = GroupCall(case_of(32, **options))
    assert again.group is made[1]
    again.close()
    assert (len(made), made[1].closed) == (2, 1)


def test_a_group_that_nobody_calls_for_ends_by_itself(monkeypatch: pytest.MonkeyPatch):
    ended = threading.Event()
    fake = Fake()
    monkeypatch.setattr(fake, "close", ended.set)
    monkeypatch.setattr(replicated, "ReplicaGroup", lambda devices, size: fake)
    monkeypatch.setattr(replicated, "_LONGEST_KEPT_S", 0.05)
    WORKLOAD.verify(case_of(way=PROCESSES, processes="2"))
    assert ended.wait(5.0)


def test_on_the_cpu_dataparallel_is_the_plain_network_and_says_so():
    case = case_of(way="DataParallel", processes="4")
    check = WORKLOAD.verify(case)
    assert check.verified, check.sentence
    with contextlib.closing(WORKLOAD.prepare(case)) as call:
        call()
        assert call.curves() == {}
        (found,) = call.findings()
    assert "runs as the plain network" in found


def test_a_step_that_learns_wrong_is_not_verified(monkeypatch: pytest.MonkeyPatch):
    step = ModuleCall._step

    def twice(self: ModuleCall, model: Any) -> object:
        step(self, model)
        return step(self, model)

    monkeypatch.setattr(ModuleCall, "_step", twice)
    assert WORKLOAD.verify(case_of()).verified is False


def test_the_chosen_card_comes_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    card = torch.device("cuda", 1)
    assert devices_of(case_of(16, card, processes="2")) == ["cuda:1", "cuda:0"]
    assert devices_of(case_of(16, processes="2")) == ["cpu", "cpu"]
    WORKLOAD.check(case_of(16, card, processes="2"))
    with pytest.raises(StudioError, match=r"4 cards cannot .* PyTorch sees 3") as raised:
        WORKLOAD.check(case_of(16, card, processes="4"))
    assert raised.value.kind is FailureKind.NO_SUCH_DEVICE


def test_parts_of_other_sizes_are_refused():
    with pytest.raises(StudioError, match="15 samples cannot be shared by 2 evenly"):
        WORKLOAD.check(case_of(15, processes="2"))
    WORKLOAD.check(case_of(15, processes="1"))


def test_it_is_told_whether_sharing_pays():
    scaling = {"sharers": (1.0, 2.0), "samples a second": (1000.0, 1800.0)}
    (gained,) = does_it_pay(scaling, 64, "card")
    assert gained == (
        "2 cards learn from 1.80\u202fksamples/s, one from 1.00\u202fksamples/s: "
        "1.8\u202f× as many."
    )
    scaling["samples a second"] = (1000.0, 900.0)
    gained, hint = does_it_pay(scaling, 64, "process")
    assert gained.startswith("2 processes learn from")
    assert "does not pay here" in hint
    assert "batch than 64" in hint
    assert does_it_pay({"sharers": (1.0,), "samples a second": (9.0,)}, 64, "card") == ()
    assert does_it_pay({}, 64, "card") == ()


def test_scaling_takes_the_best_of_a_few_steps_in_turns():
    steps: list[int] = []

    def step_of(sharers: int, best_s: float) -> Any:
        def step_s() -> float:
            steps.append(sharers)
            return best_s if len(steps) == 5 + sharers else 9.0

        return step_s

    scaling = scaling_of({1: step_of(1, 0.5), 2: step_of(2, 0.25)}, 100)
    assert steps == [1, 2] * 6
    assert scaling == {"sharers": (1.0, 2.0), "samples a second": (100 / 9.0, 100 / 9.0)}


def test_cards_talk_by_nccl_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replica_group.dist, "is_nccl_available", lambda: True)
    assert backends_for("cuda:0") == ("nccl", "gloo")
    assert backends_for("cpu") == ("gloo",)
    monkeypatch.setattr(replica_group.dist, "is_nccl_available", lambda: False)
    assert backends_for("cuda:0") == ("gloo",)


@pytest.mark.parametrize("processes", ["1", "2", "4"])
def test_the_snippet_of_one_program_runs_as_it_stands(
    processes: str, capsys: pytest.CaptureFixture[str]
):
    lines = WORKLOAD.snippet(case_of(way="DataParallel", processes=processes))
    exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out.removesuffix(" s a call\n")) > 0


def test_the_snippet_of_processes_runs_as_its_first_line_says(tmp_path: Path):
    texts = {
        processes: WORKLOAD.snippet(case_of(way=PROCESSES, processes=processes))
        for processes in ("1", "2", "4")
    }
    (tmp_path / "share.py").write_text(texts["2"])
    torchrun, *arguments = texts["2"].splitlines()[0].partition("then: ")[2].split()
    assert torchrun == "torchrun"
    found = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=90,
        check=True,
    )
    assert float(found.stdout.removesuffix(" s a call\n")) > 0
    for processes in ("1", "4"):  # the same but for the two numbers
        devices = ["cpu"] * int(processes)
        changed = texts["2"].replace("['cpu', 'cpu']", str(devices))
        changed = changed.replace("--nproc-per-node=2", f"--nproc-per-node={processes}")
        assert changed == texts[processes]
