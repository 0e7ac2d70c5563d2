"""What the parts of a call do without a card; their numbers are tried on soft and real cards."""

import pytest
import torch

from gpu_studio.engine.workloads import parts
from gpu_studio.engine.workloads.parts import PARTS, card_parts_s

CARD = torch.device("cuda", 0)


def test_operands_that_the_cpus_memory_has_no_room_for_are_left_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(parts, "free_bytes", lambda device: 4 * 1000 - 1)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: pytest.fail("measured"))
    assert card_parts_s(CARD, [torch.zeros(250)], torch.neg) == {}


@pytest.mark.parametrize("compute_s", [3.0, 5.0])
def test_the_parts_add_up_to_the_whole_call(monkeypatch: pytest.MonkeyPatch, compute_s: float):
    rounds = iter([(1.0, 4.0, compute_s, 2.0), (1.5, 4.5, compute_s, 2.5), (9.0, 9.0, 9.0, 9.0)])
    monkeypatch.setattr(parts, "_one_round", lambda *arguments: next(rounds))
    monkeypatch.setattr(parts, "_MOST_CALLS", 3)
    monkeypatch.setattr(parts, "_BUDGET_S", 60.0)
    result = card_parts_s(CARD, [torch.zeros(1)], torch.neg)
    assert tuple(result) == PARTS
    assert sum(result.values()) == pytest.approx(1.5 + 4.5 + 2.5)
    # The card's own time is never more than the call that waits for it.
    assert result["compute"] == min(compute_s, 4.5)
    assert result["launch"] >= 0


class Clock:
    """Moves only when something takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(parts.time, "perf_counter", lambda: self.now_s)

    def passing(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize(("call_s", "calls"), [(4.0, 1), (0.02, 2)])
def test_a_call_that_takes_long_is_made_once(
    monkeypatch: pytest.MonkeyPatch, call_s: float, calls: int
):
    clock = Clock(monkeypatch)
    collected = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: clock.passing(call_s))
    monkeypatch.setattr(parts, "_queued_s", lambda *arguments: collected.append("queued") or 0.25)
    monkeypatch.setattr(parts, "_BUDGET_S", call_s)

    def compute(operand: torch.Tensor) -> torch.Tensor:
        collected.append("called")
        clock.passing(0.001)
        return operand

    result = card_parts_s(CARD, [torch.zeros(1)], compute)
    assert len(collected) == calls
    if calls == 1:
        assert result["launch"] == pytest.approx(0.001)
        assert result["compute"] == pytest.approx(4.0)
