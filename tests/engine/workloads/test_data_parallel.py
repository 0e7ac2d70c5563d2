"""A batch that several processes or cards share: the group, the call, and whether it pays."""

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

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine import replica, replica_group
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.replica import ReplicaAnswer
from gpu_studio.engine.replica_group import ReplicaGroup
from gpu_studio.engine.workloads import replicated
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.data_parallel import DataParallel
from gpu_studio.engine.workloads.replicated import ROUNDS, Scaling, devices_of, rounds_of
from tests.engine.answers import ask, run_request
from tests.patience import outliving

CPU = torch.device("cpu")
WORKLOAD = DataParallel()
PROCESSES = "DistributedDataParallel"
_LONGEST_S = 480.0


def case_of(size: int = 16, device: torch.device = CPU, **options: str) -> Case:
    return make_case(WORKLOAD.description, device, size, options=options)


@pytest.fixture(autouse=True, scope="module")
def nobody_is_late() -> Iterator[None]:
    """On a busy PC, three processes have to import PyTorch before a group answers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica_group, "_LONGEST_START_S", _LONGEST_S)
        patch.setattr(replica_group, "_LONGEST_ANSWER_S", _LONGEST_S)
        yield


def everyone(group: ReplicaGroup) -> list[psutil.Process]:
    launcher = psutil.Process(group.pid)
    return [launcher, *launcher.children(recursive=True)]


# ── the group ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def group() -> Iterator[ReplicaGroup]:
    with contextlib.closing(ReplicaGroup(["cpu", "cpu"], 16)) as one:
        yield one


def test_a_group_learns_what_one_process_would(group: ReplicaGroup):
    for processes in (1, 2):
        answer = group.check(processes)
        assert answer.are_same
        assert answer.error < 1e-4
        assert group.step_s(processes) > 0
    assert group.backend == "gloo"
    assert group.start_s > 0


def test_a_group_can_be_reached_from_this_pc_alone(group: ReplicaGroup):
    listening = [
        connection.laddr.ip
        for process in everyone(group)
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}  # gloo's, between the processes


def test_a_run_checks_and_times_the_same_processes(monkeypatch: pytest.MonkeyPatch):
    started: list[ReplicaGroup] = []
    processes: list[psutil.Process] = []

    def start(devices: Sequence[str], size: int) -> ReplicaGroup:
        started.append(ReplicaGroup(devices, size))
        processes.extend(everyone(started[-1]))
        return started[-1]

    monkeypatch.setattr(replicated, "ReplicaGroup", start)
    options = {"way": PROCESSES, "processes": "2"}
    result = ask(run_request(workload="data_parallel", size=16, options=options))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True, result.verification
    assert result.calls_per_sample == 1
    assert result.details.peak_allocated_bytes is None
    assert result.details.curves["sharers"] == (1.0, 2.0)
    assert "8 on cpu, 8 on cpu" in result.details.findings[0]
    assert "by gloo" in result.details.findings[1]
    assert "2 processes " in result.details.findings[2]
    assert len(started) == 1
    # torchrun and its two; on Windows, also what starts the two, and their console.
    assert len(processes) == (6 if sys.platform == "win32" else 3)
    assert outliving(processes) == []
    assert not Path(started[0]._folder.name).exists()


def test_a_group_ends_without_torchrun_too():
    with contextlib.closing(ReplicaGroup(["cpu", "cpu"], 16)) as one:
        processes = everyone(one)
        processes.pop(0).kill()
    assert outliving(processes) == []


def test_a_group_of_which_a_process_dies_ends_with_a_sentence():
    with contextlib.closing(ReplicaGroup(["cpu", "cpu"], 16)) as one:
        processes = everyone(one)
        processes[-1].kill()

        def go_on() -> None:
            for _ in range(1000):
                one.step_s(2)

        with pytest.raises(StudioError, match=r"\(gloo\) ended"):
            go_on()
        assert outliving(processes) == []


def test_a_group_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replica_group, "_LONGEST_START_S", 0.2)
    with pytest.raises(StudioError, match=r"did not answer within 0 s"):
        ReplicaGroup(["cpu"], 16)


def test_cards_talk_by_nccl_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    def backends(address: str) -> tuple[str, ...]:
        return accelerator_of(torch.device(address)).process_group_backends

    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    assert backends("cuda:0") == ("nccl", "gloo")
    assert backends("cpu") == ("gloo",)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    assert backends("cuda:0") == ("gloo",)


def test_the_clock_sees_the_step_alone(monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []

    def all_reduce(tensor: torch.Tensor, op: object = None, group: object = None) -> None:
        order.append("exchange")
        if op is torch.distributed.ReduceOp.MAX:
            tensor.clamp_(min=7.0)  # another process took 7 s for the step

    def clock() -> float:
        order.append("clock")
        return float(len(order))

    monkeypatch.setattr(replica.dist, "all_reduce", all_reduce)
    monkeypatch.setattr(replica, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(replica.Team, "_share_cores", lambda team: None)
    team = object.__new__(replica.Team)
    team._group, team._device, team._part = None, CPU, ()
    team._training = SimpleNamespace(step=lambda: order.append("step"))
    answer = team.timed_step()
    assert order == ["exchange", "clock", "step", "clock", "exchange"]
    # The step is over when the slowest process has done it, not when the first has.
    assert answer.elapsed_s == 7.0


# ── the workload ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ReplicaAnswer(are_same=False, error=0.0), "copies of the network differ"),
        (ReplicaAnswer(are_same=True, error=0.01), "off by 1.0e-02"),
        (ReplicaAnswer(are_same=True, error=None), "not a number"),
    ],
)
def test_a_group_that_learns_wrong_is_not_verified(
    answer: ReplicaAnswer, words: str, monkeypatch: pytest.MonkeyPatch
):
    closed: list[bool] = []
    fake = SimpleNamespace(check=lambda _processes: answer, close=lambda: closed.append(True))
    monkeypatch.setattr(replicated, "ReplicaGroup", lambda devices, size: fake)
    check = WORKLOAD.verify(case_of(way=PROCESSES, processes="2"))
    assert check.verified is False
    assert words in check.finding
    # The processes wait for their run; another one ends them.
    assert closed == []
    WORKLOAD.prepare(case_of(32, way=PROCESSES, processes="2"))
    assert closed == [True]


def test_the_chosen_card_comes_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    card = torch.device("cuda", 1)
    assert devices_of(case_of(16, card, processes="2")) == ["cuda:1", "cuda:0"]
    assert devices_of(case_of(16, processes="2")) == ["cpu", "cpu"]
    WORKLOAD.check(case_of(16, card, processes="2"))
    with pytest.raises(StudioError, match=r"4 cards cannot .* PyTorch sees 3") as raised:
        WORKLOAD.check(case_of(16, card, processes="4"))
    assert raised.value.kind is FailureKind.NO_SUCH_DEVICE
    with pytest.raises(StudioError, match="15 samples cannot be shared by 2 evenly"):
        WORKLOAD.check(case_of(15, processes="2"))


def test_on_the_cpu_dataparallel_is_the_plain_network_and_says_so():
    case = case_of(way="DataParallel", processes="4")
    check = WORKLOAD.verify(case)
    assert check.verified, check.sentence
    with contextlib.closing(WORKLOAD.prepare(case)) as call:
        call()
        assert call.curves() == {}
        (found,) = call.findings()
    assert "runs the plain network" in found


# ── whether it pays ──────────────────────────────────────────────────────────────────────────────

STEADY = (0.1,) * ROUNDS


def shared(*shared_s: float, alone_s: tuple[float, ...] = STEADY, **changes: Any) -> Scaling:
    """Return a comparison of one with two, by the seconds of two in each round."""
    rounds_s = {1: alone_s, 2: shared_s * ROUNDS if len(shared_s) == 1 else shared_s}
    return Scaling(rounds_s=rounds_s, size=64, **{"word": "process", **changes})


def test_a_gain_is_reported_with_its_interval():
    (gained,) = shared(0.0625, word="card").sentences()
    sentence = gained.replace("\u202f", " ")
    assert "2 cards" in sentence
    for fact in ("1.02 ksamples/s", "640 samples/s", "1.6 × as many", "1.6 × to 1.6 ×"):
        assert fact in sentence
    assert shared(0.0625).doubts() == {}
    noisy_s = (0.05,) * 6 + (0.9,) * 3
    assert shared(*noisy_s).curves == {
        "sharers": (1.0, 2.0), "samples a second": (pytest.approx(640), pytest.approx(1280)),
    }  # fmt: skip


def test_the_interval_is_that_of_the_rounds_and_not_of_drifting_steps():
    slower_s = tuple(0.1 * (1 + number) for number in range(ROUNDS))
    half_s = tuple(seconds / 2 for seconds in slower_s)
    assert shared(*half_s, alone_s=slower_s).gain == pytest.approx((2.0, 2.0, 2.0))


def test_a_loss_is_reported_with_what_would_help_and_no_more_than_is_known():
    gained, hint = shared(0.11).sentences()
    assert gained.startswith("2 processes ")
    assert "slower here" in hint
    assert "64" in hint
    _, unsure = shared(0.09, 0.09, 0.09, 0.095, 0.1, 0.11, 0.11, 0.11, 0.11).sentences()
    assert unsure.startswith("Too close to call")
    alone = Scaling(rounds_s={1: STEADY}, size=64, word="card", was_disturbed=True)
    assert (alone.gain, alone.sentences(), alone.doubts()) == (None, (), {})


@pytest.mark.parametrize(
    ("scaling", "reason"),
    [
        (shared(0.02), "cannot be more than 2 times as fast"),
        (shared(*[0.05, 0.1, 0.2] * 3), "changed from round to round"),
        (shared(0.06, was_disturbed=True), "other programs kept the CPU busy"),
    ],
)
def test_an_implausible_gain_is_doubtful(scaling: Scaling, reason: str):
    (doubt,) = scaling.doubts().values()
    assert reason in doubt


@pytest.mark.parametrize(("step_s", "calls"), [(0.001, 2), (0.2, 1)])
def test_the_order_turns_and_a_short_step_is_taken_twice(step_s: float, calls: int):
    taken: list[int] = []

    def step_of(sharers: int) -> Any:
        def step() -> float:
            taken.append(sharers)
            return step_s * len(taken)

        return step

    rounds_s = rounds_of({1: step_of(1), 2: step_of(2), 4: step_of(4)})
    up = [sharers for sharers in (1, 2, 4) for _ in range(calls)]
    assert taken[: 2 * len(up)] == up + up[::-1]
    assert [len(seconds) for seconds in rounds_s.values()] == [ROUNDS] * 3
    assert rounds_s[1][0] == pytest.approx(step_s * calls)


# ── the snippets ─────────────────────────────────────────────────────────────────────────────────


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


def test_the_snippet_of_one_program_runs_as_it_stands(capsys: pytest.CaptureFixture[str]):
    lines = WORKLOAD.snippet(case_of(way="DataParallel", processes="2"))
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
