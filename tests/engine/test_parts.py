"""What the parts of a call do without a card; their numbers are tried on soft and real cards."""

from __future__ import annotations

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
    told = card_parts_s(CARD, [torch.zeros(1)], torch.neg)
    assert tuple(told) == PARTS
    assert sum(told.values()) == pytest.approx(1.5 + 4.5 + 2.5)
    # The card's own time is never more than the call that waits for it.
    assert told["compute"] == min(compute_s, 4.5)
    assert told["launch"] >= 0
