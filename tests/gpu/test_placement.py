"""Models on a card: every tensor's place, and the proof that the output stays the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.protocol import PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.engine.models import MODELS
from tests.engine.answers import only

if TYPE_CHECKING:
    from gpu_studio.core.protocol import Event
    from tests.engine.engine_child import EngineChild
    from tests.gpu.conftest import Ask

_NAMES = [model.description.name for model in MODELS]


def end_of(events: list[Event]) -> PlaceFinished:
    assert isinstance(events[-1], PlaceFinished), events[-1]
    return events[-1]


@pytest.mark.parametrize("model", _NAMES)
def test_every_tensor_moves_there_and_back(card: str, model: str, engine: EngineChild) -> None:
    before = "cpu"
    for after in (card, card, "cpu"):
        events = engine.ask(PlaceModel(model=model, device=after))
        end, rows = end_of(events), only(PlaceRow, events)
        assert len(rows) == end.tensors > 0
        assert {(row.device_before, row.device_after) for row in rows} == {(before, after)}
        size_bytes = sum(row.bytes for row in rows)
        assert end.moved_bytes == (size_bytes if before != after else 0)
        assert end.output_device == after
        if after != "cpu":
            # The allocator rounds each tensor up to 512 bytes.
            rounded = sum(-(-row.bytes // 512) * 512 for row in rows)
            assert end.allocated_delta_bytes == (rounded if before != after else 0)
        before = after


@pytest.mark.real_kernels
@pytest.mark.parametrize("model", _NAMES)
def test_the_output_stays_the_same(card: str, model: str, ask: Ask) -> None:
    for device in (card, "cpu", card):
        end = end_of(ask(PlaceModel(model=model, device=device)))
        assert end.same_output is True
        assert 0 <= end.largest_difference <= end.tolerance < 0.1


@pytest.mark.real_kernels
def test_a_damaged_model_is_noticed(card: str, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_studio.engine import placement

    move = placement._move

    def damaging(model, device):
        elapsed_s = move(model, device)
        next(model.parameters()).data[0].add_(1.0)
        return elapsed_s

    monkeypatch.setattr(placement, "_move", damaging)
    assert end_of(ask(PlaceModel(model="mlp", device=card))).same_output is False
