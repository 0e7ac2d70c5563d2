import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.placement_messages import PlaceRow, PlaceTensors, TensorsPlaced
from gpu_studio.engine.switcher import tensor_placement
from tests.engine.answers import ask, only


def placing(**changes: object) -> PlaceTensors:
    return PlaceTensors(**{"device": "cpu", "size": 64, "dtype": "float32", **changes})


def test_both_tensors_and_their_product_are_reported():
    events = ask(placing())
    assert [row.name for row in only(PlaceRow, events)] == ["x", "w", "x @ w"]
    assert {row.bytes for row in only(PlaceRow, events)} == {64 * 64 * 4}
    placed = events[-1]
    assert isinstance(placed, TensorsPlaced)
    assert placed.moved_bytes == 64 * 64 * 4
    assert placed.same_values is True
    assert placed.result_device == "cpu"
    assert min(placed.cpu_made_s, placed.moved_s, placed.made_s) > 0
    assert placed.allocated_delta_bytes is None


def test_a_copy_that_lost_a_bit_is_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "equal", lambda one, other: False)
    assert ask(placing())[-1].same_values is False


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (placing(device="tpu"), FailureKind.NO_SUCH_DEVICE),
        (placing(dtype="int3"), FailureKind.BAD_REQUEST),
        (placing(size=0), FailureKind.BAD_REQUEST),
        (placing(size=10**6), FailureKind.TOO_LARGE),
    ],
)
def test_what_cannot_be_placed_is_refused(request_: PlaceTensors, kind: FailureKind):
    (failed,) = ask(request_)
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is kind


def test_the_free_memory_of_both_devices_is_checked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tensor_placement, "free_bytes", lambda device: 2 * 64 * 64 * 4)
    assert ask(placing())[-1].failure.kind is FailureKind.TOO_LARGE
    monkeypatch.setattr(tensor_placement, "free_bytes", lambda device: 3 * 64 * 64 * 4)
    assert isinstance(ask(placing())[-1], TensorsPlaced)
