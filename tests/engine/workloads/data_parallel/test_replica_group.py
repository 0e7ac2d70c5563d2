import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
from tests.engine.workloads.data_parallel.cases import PROCESSES, WORKLOAD, case_of
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


# PyTorch's own threads, if a busy PC lets a process end before them: rare, and after the output.
_TORN_DOWN = "terminate called without an active exception"
_TRIES = 3


def output_of(command: Sequence[str], **options: Any) -> str:
    """Return what a script prints; it has to end with 0.

    One whose end PyTorch tore down is started again.
    """
    for _ in range(_TRIES):
        found = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        if found.returncode == 0 or _TORN_DOWN not in found.stderr:
            break
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize("processes", ["1", "2", "4"])
def test_the_snippet_of_one_program_runs_as_it_stands(
    processes: str, capsys: pytest.CaptureFixture[str]
):
    lines = WORKLOAD.snippet(case_of(way="DataParallel", processes=processes))
    exec(compile(lines, "snippet", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out.removesuffix(" s a call\n")) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="the snippet of Windows needs no torchrun")
def test_the_snippet_of_processes_runs_as_its_first_line_says(tmp_path: Path):
    texts = {
        processes: WORKLOAD.snippet(case_of(way=PROCESSES, processes=processes))
        for processes in ("1", "2", "4")
    }
    (tmp_path / "share.py").write_text(texts["1"])  # it meets torchrun as several would
    torchrun, *arguments = texts["1"].splitlines()[0].partition("then: ")[2].split()
    assert torchrun == "torchrun"
    printed = output_of(
        [sys.executable, "-m", "torch.distributed.run", *arguments], cwd=tmp_path, timeout=240
    )
    assert float(printed.removesuffix(" s a call\n")) > 0
    for processes in ("1", "4"):  # they differ in two numbers alone
        devices = ["cpu"] * int(processes)
        changed = texts["2"].replace("['cpu', 'cpu']", str(devices))
        changed = changed.replace("--nproc-per-node=2", f"--nproc-per-node={processes}")
        assert changed == texts[processes]


# A PyTorch without libuv, as those for Windows are: what asks for it ends in an error.
NO_LIBUV = """\
import sys
import torch.distributed
from torch._C import _distributed_c10d

whole = _distributed_c10d.TCPStore

class Lacking(whole):
    def __init__(self, *arguments, use_libuv=True, **options):
        if use_libuv:
            raise RuntimeError("built without libuv")
        super().__init__(*arguments, use_libuv=False, **options)

for module in list(sys.modules.values()):
    if getattr(module, "TCPStore", None) is whole:
        module.TCPStore = Lacking
"""


def windows_snippet(processes: str, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as windows:
        windows.setattr("sys.platform", "win32")
        return WORKLOAD.snippet(case_of(way=PROCESSES, processes=processes))


def test_the_snippet_of_processes_runs_without_libuv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = windows_snippet("1", monkeypatch)  # it meets torchrun and itself as several would
    several = text.replace("['cpu']", "['cpu', 'cpu']").replace("node=1", "node=2")
    assert several == windows_snippet("2", monkeypatch)
    name, _, command = text.splitlines()[0].removeprefix("# Save this as ").partition(", then: ")
    assert command == f"python {name}"
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(NO_LIBUV, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    printed = output_of([sys.executable, name], cwd=tmp_path, env=environment, timeout=90)
    assert float(printed.removesuffix(" s a call\n")) > 0
