"""Devices of this PC and of another one train together: real engines, torchrun and gloo."""

from __future__ import annotations

import socket
import sys
import threading

import psutil
import pytest
import torch
import torch.distributed as dist

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, SamplesMeasured
from gpu_studio.core.messages.together_messages import ExchangeBackend, JoinTraining, Limited
from gpu_studio.engine import together_group
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.replica import ReplicaAnswer
from gpu_studio.engine.replica_group import ReplicaGroup
from gpu_studio.engine.together_meeting import port_key
from gpu_studio.engine.workloads import replicated, together_case
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.data_parallel import DataParallel
from gpu_studio.engine.workloads.together_scaling import TogetherScaling
from tests.engine.answers import run_request
from tests.family import family_running
from tests.patience import PATIENCE_S, outliving

_TOGETHER = ("cpu", "attic/cpu")


def request_of(there, **changes):
    options = {"way": "DistributedDataParallel", "processes": "2"}
    return run_request(
        **{
            "workload": "data_parallel", "size": 64, "options": options, "budget_s": 0.2,
            "together": _TOGETHER, "other_pcs": (there,), **changes,
        }
    )  # fmt: skip


def last_event(request):
    *_, last = Dispatcher().run(request, threading.Event())
    return last


def test_two_pcs_train_together_and_nothing_of_them_is_left(there):
    last = last_event(request_of(there))
    assert isinstance(last, RunFinished), last
    assert last.verified, last.verification
    assert last.together == _TOGETHER
    assert 0 < last.training.efficiency.low <= last.training.efficiency.high < 2
    assert last.training.network_bytes_per_s.median > 0
    assert set(last.training.waiting) == set(_TOGETHER)
    assert "32 on cpu, 32 on attic/cpu" in " ".join(last.findings)
    assert "NCCL" not in " ".join(last.findings)
    assert there.host not in str(last)
    assert outliving(psutil.Process().children(recursive=True)) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"other_pcs": ()}, "no way to attic"),
        ({"together": ("attic/cpu", "cpu")}, "comes first"),
        ({"together": ("cpu",)}, "Two or four"),
        ({"size": 63}, "63 samples"),
        ({"workload": "matmul", "options": {}}, "several PCs"),
    ],
)
def test_what_cannot_work_is_said_before_anything_starts(there, monkeypatch, changes, words):
    monkeypatch.setattr(replicated, "TogetherGroup", None)
    last = last_event(request_of(there, **changes))
    assert isinstance(last, RunFailed)
    assert last.failure.kind is FailureKind.BAD_REQUEST
    assert words in last.failure.message


@pytest.fixture
def second_loopback(monkeypatch) -> str:
    """Return an address of this PC that stands for one in a network."""
    if sys.platform != "linux":
        pytest.skip("only Linux has all of 127.0.0.0/8")
    monkeypatch.setattr(together_case, "trouble_here", lambda *_: "")
    return "127.0.0.2"


def _asked_for(request, monkeypatch):
    """Return the last event of a run, and what other PCs were asked."""
    asked = []
    start = together_group._Member.start
    monkeypatch.setattr(
        together_group._Member, "start",
        lambda self, joined, on_end: (asked.append(joined), start(self, joined, on_end)),
    )  # fmt: skip
    return last_event(request), asked


def test_two_pcs_meet_at_an_address_without_a_tunnel_and_exchange_by_gloo_if_nccl_cannot(
    there, second_loopback, monkeypatch
):
    monkeypatch.setattr(together_group, "SshTunnel", None)
    chosen = together_group.exchange_backends
    both = (ExchangeBackend.NCCL, ExchangeBackend.GLOO)

    def as_for_cards(kinds, own, *, is_tunneled):
        assert chosen(kinds, own, is_tunneled=is_tunneled) == (ExchangeBackend.GLOO,)
        return both

    monkeypatch.setattr(together_group, "exchange_backends", as_for_cards)
    request = request_of(there, rendezvous=second_loopback)
    last, asked = _asked_for(request, monkeypatch)
    assert isinstance(last, RunFinished), last
    assert last.verified, last.verification
    assert [one.backend for one in asked] == list(both)
    assert {one.rendezvous for one in asked} == {second_loopback}
    assert (last.training.backend, last.training.is_tunneled) == (ExchangeBackend.GLOO, False)
    assert "without ssh" in " ".join(last.findings)
    assert "NCCL does not work" in " ".join(last.findings)
    assert second_loopback not in str(last)
    assert outliving(psutil.Process().children(recursive=True)) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.1", "attic"])
def test_an_address_that_is_none_of_this_pc_starts_nothing(there, monkeypatch, address):
    monkeypatch.setattr(replicated, "TogetherGroup", None)
    last = last_event(request_of(there, rendezvous=address))
    assert isinstance(last, RunFailed)
    assert last.failure.kind is FailureKind.BAD_REQUEST
    assert address in last.failure.message


def test_processes_that_do_not_reach_each_other_are_a_sentence(there, second_loopback, monkeypatch):
    def silent(self, longest_s):
        raise StudioError(FailureKind.INTERNAL, "Nothing came.")

    monkeypatch.setattr(ReplicaGroup, "_receive", silent)
    monkeypatch.setattr(together_group, "SILENCE_S", 0.0)
    last = last_event(request_of(there, rendezvous=second_loopback))
    assert isinstance(last, RunFailed)
    assert "firewall" in last.failure.message
    assert outliving(psutil.Process().children(recursive=True)) == []


def _join(**changes):
    return JoinTraining(
        **{"devices": ("cpu",), "first_rank": 1, "ranks": 2, "size": 64, "store_port": 1, **changes}
    )


def test_a_pc_that_does_not_reach_the_address_says_so(second_loopback):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        request = _join(rendezvous=second_loopback, store_port=listening.getsockname()[1])
        with pytest.raises(StudioError, match="cannot be reached from here"):
            list(together_group.join_training(request, threading.Event()))


@pytest.mark.parametrize("address", ["attic", "1", "10.0.0.1:80", "a\nb"])
def test_a_leader_s_address_that_cannot_be_is_refused(monkeypatch, address):
    monkeypatch.setattr(together_group, "launch", None)
    with pytest.raises(StudioError) as failure:
        list(together_group.join_training(_join(rendezvous=address), threading.Event()))
    assert failure.value.kind is FailureKind.BAD_REQUEST


def test_nccl_for_a_cpu_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(together_group, "launch", None)
    with pytest.raises(StudioError, match="no NCCL for cpu"):
        list(together_group.join_training(_join(backend=ExchangeBackend.NCCL), threading.Event()))


def _replicas():
    return family_running(psutil.Process(), "gpu_studio.engine.replica", "--first-rank=1")


def test_the_lines_of_pytorch_name_each_device_as_its_own_pc_does():
    options = {"way": "DistributedDataParallel", "processes": "2"}
    together = ("cuda:0", "attic/cpu")
    case = make_case(
        DataParallel.description, torch.device("cuda:0"), 64, options=options, together=together
    )
    lines = DataParallel().snippet(case)
    assert "['cuda:0', 'cpu']" in lines
    assert "attic" not in lines


def test_a_pc_that_dies_in_a_run_is_a_sentence_and_leaves_nothing(there):
    events = Dispatcher().run(request_of(there, budget_s=600.0), threading.Event())
    for event in events:
        if isinstance(event, SamplesMeasured):
            family = psutil.Process().children(recursive=True)
            for process in _replicas():
                process.kill()
    assert isinstance(event, RunFailed)
    assert "attic" in event.failure.message
    assert outliving(family) == []


_JOINS = "greet(); hear(); hear(); "


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("say(b'garbage')", "attic"),
        (_JOINS + "sys.exit(0)", "The connection to attic was lost"),
        (_JOINS + "sys.stdin.read()", "attic/cpu did not begin"),
        (_JOINS + 'say(b\'{"type":"training_left"}\\n\'); sys.stdin.read()', "process of attic"),
        (
            _JOINS + "say(encode(RequestFailed(failure=Failure("
            "FailureKind.BAD_REQUEST, '<b>no</b>')))); sys.stdin.read()",
            "attic: <b>no</b>",
        ),
    ],
    ids=["garbage", "ends", "never comes", "leaves", "refuses"],
)
def test_a_pc_that_does_not_take_part_is_named_within_the_patience(
    there, play, monkeypatch, code, words
):
    longest_s = 2.0 if "did not begin" in words else PATIENCE_S
    monkeypatch.setattr(together_group, "LONGEST_MEETING_S", longest_s)
    play(code)
    last = last_event(request_of(there))
    assert isinstance(last, RunFailed)
    assert words in last.failure.message
    assert outliving(psutil.Process().children(recursive=True)) == []


@pytest.mark.parametrize("port", ["", "0", "-1", "garbage", "65536", "1" * 5000])
def test_a_port_that_cannot_be_is_refused(tmp_path, port):
    group = object.__new__(together_group.TogetherGroup)
    group._devices, group.backend = _TOGETHER, ExchangeBackend.GLOO.value
    group._store = dist.FileStore(str(tmp_path / "store"), 1)
    group._store.set(port_key(1), port)
    group._store.set(port_key(0), "65535")
    assert group._port_of(0, 0.0) == 65535
    with pytest.raises(StudioError, match="attic/cpu answered something unexpected"):
        group._port_of(1, 0.0)


def test_a_pc_without_a_port_is_named_and_nothing_is_left(there, play):
    port = "garbage"
    play(
        "import torch.distributed as dist; greet(); hear(); "
        "port = msgspec.json.decode(hear())['store_port']; "
        "store = dist.TCPStore('127.0.0.1', port, is_master=False, wait_for_workers=False, "
        f"use_libuv=False); store.set('port/1', '{port}'); sys.stdin.read()"
    )
    last = last_event(request_of(there))
    assert isinstance(last, RunFailed)
    assert "attic/cpu answered something unexpected" in last.failure.message
    assert outliving(psutil.Process().children(recursive=True)) == []


def test_a_tunnel_that_is_refused_names_what_forbids_it(there, monkeypatch):
    monkeypatch.setenv("STAND_IN_TUNNEL", "Error: remote port forwarding failed for listen port 0")
    last = last_event(request_of(there))
    assert isinstance(last, RunFailed)
    assert "AllowTcpForwarding" in last.failure.message


@pytest.mark.parametrize("elapsed_s", [0.0, -1.0, 1e9, float("nan"), float("inf")])
def test_a_time_that_cannot_be_is_refused(elapsed_s, monkeypatch):
    group = object.__new__(together_group.TogetherGroup)
    monkeypatch.setattr(group, "_ask", lambda order: ReplicaAnswer(elapsed_s=elapsed_s))
    with pytest.raises(StudioError, match="time that cannot be"):
        group.step_s(2)


@pytest.mark.parametrize(
    ("alone_s", "exchange_s", "step_s", "limited"),
    [
        ((0.1, 0.1), 0.3, 0.4, Limited.NETWORK),
        ((0.1, 0.4), 0.01, 0.41, Limited.SLOWEST_DEVICE),
        ((0.1, 0.1), 0.01, 0.4, Limited.OTHER),
        ((0.1, 0.1), 0.01, 0.102, Limited.NOTHING),
    ],
)
def test_what_limits_is_named_by_the_times(alone_s, exchange_s, step_s, limited):
    rounds_s = dict(enumerate([(step_s,) * 9, *((one,) * 9 for one in alone_s), (exchange_s,) * 9]))
    result = TogetherScaling(_TOGETHER, 64, 1_000_000, rounds_s).result
    assert result.limited is limited
    together, alone = 64 / step_s, 32 / alone_s[0] + 32 / alone_s[1]
    assert result.efficiency.median == pytest.approx(together / alone)
    assert result.network_bytes_per_s.median == pytest.approx(1_000_000 / exchange_s)
    assert result.waiting["cpu"] == pytest.approx(1 - alone_s[0] / step_s)
