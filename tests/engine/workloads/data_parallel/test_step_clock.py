"""What the clock of a shared step sees: the step, and no exchange of its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from gpu_studio.engine import replica


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
