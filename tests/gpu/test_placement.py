import pytest

from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.pitfall_messages import PitfallFinished, RunPitfall
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.switcher.placement import MODELS
from tests.engine.answers import only
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
    from gpu_studio.engine.switcher.placement import PlacedModel

    move = PlacedModel.move

    def damaging(thing, copy):
        move(thing, copy)
        next(thing._model.parameters()).data[0].add_(1.0)

    monkeypatch.setattr(PlacedModel, "move", damaging)
    assert end_of(ask(PlaceModel(model="mlp", device=card))).same_output is False


@pytest.mark.real_kernels
@pytest.mark.parametrize("model", _NAMES)
def test_half_and_back_is_within_half_s_rounding(
    card: str, model: str, engine: EngineChild
) -> None:
    for dtype in ("", "float16", "float32"):
        end = end_of(engine.ask(PlaceModel(model=model, device=card, dtype=dtype)))
        assert end.same_output is True, dtype


@pytest.mark.real_kernels
@pytest.mark.parametrize("name", [pitfall.description.name for pitfall in PITFALLS])
def test_a_pitfall_is_what_it_says_on_a_real_card(
    card: str, name: str, engine: EngineChild
) -> None:
    finished = engine.ask(RunPitfall(name=name, device=card))[-1]
    assert isinstance(finished, PitfallFinished), finished
    if name in ("mixed_devices", "out_of_memory", "sticky_error"):
        assert finished.broken.error
        assert not finished.fixed.error
    if name == "sticky_error":
        assert finished.broken.figures[0].value == 2  # what has nothing to do with it fails, too
    if name == "no_synchronize":
        # The first watch is stopped before the second one, which waits for the card.
        assert [one.value for one in finished.broken.figures] == sorted(
            one.value for one in finished.broken.figures
        )
