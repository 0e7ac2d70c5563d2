import contextlib
import threading
from typing import Any

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.replica import ReplicaAnswer
from gpu_studio.engine.workloads import replicated
from gpu_studio.engine.workloads.replicated import ROUNDS, GroupCall, Scaling, devices_of, rounds_of
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


STEADY = (0.1,) * ROUNDS


def shared(*shared_s: float, alone_s: tuple[float, ...] = STEADY, **changes: Any) -> Scaling:
    """Return a comparison of one with two, by the seconds of two in each round."""
    rounds_s = {1: alone_s, 2: shared_s * ROUNDS if len(shared_s) == 1 else shared_s}
    return Scaling(rounds_s=rounds_s, size=64, **{"word": "process", **changes})


def test_the_curve_is_that_of_the_median_steps():
    noisy_s = (0.05,) * 6 + (0.9,) * 3
    assert shared(*noisy_s).curves == {
        "sharers": (1.0, 2.0), "samples a second": (pytest.approx(640), pytest.approx(1280)),
    }  # fmt: skip


def test_a_gain_is_reported_with_its_interval():
    (gained,) = shared(0.0625, word="card").sentences()
    sentence = gained.replace("\u202f", " ")
    assert "2 cards" in sentence
    for fact in ("1.02 ksamples/s", "640 samples/s", "1.6 × as many", "1.6 × to 1.6 ×"):
        assert fact in sentence
    assert shared(0.0625).doubts() == {}


def test_the_interval_is_that_of_the_rounds_and_not_of_drifting_steps():
    slower_s = tuple(0.1 * (1 + number) for number in range(ROUNDS))
    half_s = tuple(seconds / 2 for seconds in slower_s)
    gain = shared(*half_s, alone_s=slower_s).gain
    assert (gain.low, gain.median, gain.high) == pytest.approx((2.0, 2.0, 2.0))


def test_a_loss_is_reported_with_what_would_help():
    gained, hint = shared(0.11).sentences()
    assert gained.startswith("2 processes ")
    assert "slower here" in hint
    assert "64" in hint


def test_what_cannot_be_reported_is_not():
    around_one_s = (0.09, 0.09, 0.09, 0.095, 0.1, 0.11, 0.11, 0.11, 0.11)
    _, unsure = shared(*around_one_s).sentences()
    assert unsure.startswith("Too close to call")
    assert shared(*around_one_s).doubts() == {}


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


def test_one_alone_has_nothing_to_gain():
    alone = Scaling(rounds_s={1: STEADY}, size=64, word="card", was_disturbed=True)
    assert (alone.gain, alone.sentences(), alone.doubts()) == (None, (), {})


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
