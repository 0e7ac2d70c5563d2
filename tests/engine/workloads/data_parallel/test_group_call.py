import contextlib
import threading
from typing import Any

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.replica import ReplicaAnswer
from gpu_studio.engine.workloads import replicated
from gpu_studio.engine.workloads.replicated import GroupCall, devices_of
from tests.engine.workloads.data_parallel.cases import PROCESSES, WORKLOAD, case_of
from tests.patience import PATIENCE_S


class Fake:
    def __init__(self, answer: ReplicaAnswer | None = None) -> None:
        self.answer = answer or ReplicaAnswer(are_same=True, error=0.0)
        self.is_running = True
        self.closed = 0

    def check(self, processes: int) -> ReplicaAnswer:
        return self.answer

    def close(self) -> None:
        self.closed += 1


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
    monkeypatch.setattr(replicated, "ReplicaGroup", lambda devices, size: Fake(answer))
    check = WORKLOAD.verify(case_of(way=PROCESSES, processes="2"))
    assert check.verified is False
    assert words in check.finding
    replicated._waiting_group.end()


def test_a_group_that_waits_is_for_the_same_call_alone(monkeypatch: pytest.MonkeyPatch):
    collected: list[Fake] = []

    def make(devices: Any, size: int) -> Fake:
        collected.append(Fake())
        return collected[-1]

    monkeypatch.setattr(replicated, "ReplicaGroup", make)
    options = {"way": PROCESSES, "processes": "2"}
    WORKLOAD.verify(case_of(16, **options))
    assert (len(collected), collected[0].closed) == (1, 0)
    call = GroupCall(case_of(32, **options))  # another batch: the one that waits is ended
    assert (len(collected), collected[0].closed) == (2, 1)
    call.keep()
    call.close()
    assert collected[1].closed == 0
    again = GroupCall(case_of(32, **options))
    assert again.group is collected[1]
    again.close()
    assert (len(collected), collected[1].closed) == (2, 1)


def test_an_unused_group_ends_by_itself(monkeypatch: pytest.MonkeyPatch):
    ended = threading.Event()
    fake = Fake()
    monkeypatch.setattr(fake, "close", ended.set)
    monkeypatch.setattr(replicated, "ReplicaGroup", lambda devices, size: fake)
    monkeypatch.setattr(replicated, "_LONGEST_KEPT_S", 0.05)
    WORKLOAD.verify(case_of(way=PROCESSES, processes="2"))
    assert ended.wait(PATIENCE_S)


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


def test_on_the_cpu_dataparallel_is_the_plain_network_and_says_so():
    case = case_of(way="DataParallel", processes="4")
    check = WORKLOAD.verify(case)
    assert check.verified, check.sentence
    with contextlib.closing(WORKLOAD.prepare(case)) as call:
        call()
        assert call.curves() == {}
        (found,) = call.findings()
    assert "runs the plain network" in found
