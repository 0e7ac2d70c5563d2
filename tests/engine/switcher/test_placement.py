import math
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel, PlaceRow
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.switcher import placement
from gpu_studio.engine.switcher.placement import MODELS, PlacedModel, TimedCopy, find_model
from tests.engine.answers import ask, only

NAMES = [model.description.name for model in MODELS]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_for_every_parameter_and_buffer(name: str):
    model, _ = find_model(name).build()
    events = ask(PlaceModel(model=name, device="cpu"))
    rows = only(PlaceRow, events)
    expected = {f"parameter {n}": p for n, p in model.named_parameters()}
    expected |= {f"buffer {n}": b for n, b in model.named_buffers()}
    assert {f"{row.kind} {row.name}" for row in rows} == set(expected)
    for row in rows:
        tensor = expected[f"{row.kind} {row.name}"]
        assert row.shape == tuple(tensor.shape)
        assert row.bytes == tensor.nbytes
        assert f"torch.{row.dtype}" == str(tensor.dtype)
        assert (row.device_before, row.device_after) == ("cpu", "cpu")
    finished = events[-1]
    assert isinstance(finished, PlaceFinished)
    assert finished.tensors == len(rows)
    assert finished.moved_bytes == 0  # it was there already
    assert finished.elapsed_s >= 0
    assert finished.same_output is True
    assert finished.largest_difference == 0.0
    assert finished.output_device == "cpu"
    assert finished.allocated_delta_bytes is None


def test_a_model_is_the_same_every_time_and_leaves_the_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second = find_model("mlp").build(), find_model("mlp").build()
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first[0](first[1]), second[0](second[1]))


def test_a_model_stays_where_it_was_placed(monkeypatch: pytest.MonkeyPatch):
    """The CPU is the only device here, so the model itself is followed."""
    things = []
    move = PlacedModel.move

    def noting(thing: PlacedModel, copy: TimedCopy) -> None:
        things.append(thing)
        move(thing, copy)

    monkeypatch.setattr(PlacedModel, "move", noting)
    dispatcher = Dispatcher()
    for name in ("mlp", "mlp", "linear_10", "mlp"):
        ask(PlaceModel(model=name, device="cpu"), dispatcher)
    assert things[0] is things[1]
    assert things[3] is not things[0]  # placing another one has released it


def test_what_a_device_has_no_room_for_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(placement, "resolve_device", lambda address: torch.device(address))
    monkeypatch.setattr(placement, "prove_kernels", lambda device: None)
    monkeypatch.setattr(placement, "free_bytes", lambda device: 439)
    (failed,) = ask(PlaceModel(model="linear_10", device="meta"))
    assert failed.failure.kind is FailureKind.TOO_LARGE
    assert "440" in failed.failure.message


def test_a_refusal_leaves_a_model_where_it_was(monkeypatch: pytest.MonkeyPatch):
    dispatcher = Dispatcher()
    ask(PlaceModel(model="linear_10", device="cpu", dtype="float16"), dispatcher)
    with monkeypatch.context() as full:
        failure = StudioError(FailureKind.TOO_LARGE, "There is no room.")
        full.setattr(placement, "_refuse_too_large", Mock(side_effect=failure))
        (refused,) = ask(PlaceModel(model="linear_10", device="cpu"), dispatcher)
    assert isinstance(refused, RequestFailed)
    events = ask(PlaceModel(model="linear_10", device="cpu"), dispatcher)
    assert {row.dtype for row in only(PlaceRow, events)} == {"float16"}, "where it was"


def test_outputs_are_compared_without_tf32():
    """cuDNN's convolutions use it by default on cards that have it."""
    seen = []
    thing = PlacedModel("convnet")
    thing._model.register_forward_hook(lambda *_: seen.append(torch.backends.cudnn.enabled))
    before = torch.backends.cudnn.enabled
    thing._output()
    assert seen == [False]
    assert torch.backends.cudnn.enabled is before


@pytest.mark.parametrize("by", [1e-3, math.nan])
def test_a_changed_output_is_seen(monkeypatch: pytest.MonkeyPatch, by: float):
    def spoiling(thing: PlacedModel, copy: TimedCopy) -> None:
        with torch.no_grad():
            next(thing._model.parameters()).view(-1)[0] += by

    monkeypatch.setattr(PlacedModel, "move", spoiling)
    finished = ask(PlaceModel(model="linear_10", device="cpu"))[-1]
    assert isinstance(finished, PlaceFinished)
    assert finished.same_output is False
    if math.isnan(by):
        assert finished.largest_difference is None
    else:
        assert finished.largest_difference > finished.tolerance


@pytest.mark.parametrize("name", NAMES)
def test_half_and_back(name: str):
    dispatcher = Dispatcher()
    ask(PlaceModel(model=name, device="cpu"), dispatcher)
    for dtype in ("float16", "float32"):
        events = ask(PlaceModel(model=name, device="cpu", dtype=dtype), dispatcher)
        learned = [row for row in only(PlaceRow, events) if row.dtype != "int64"]
        assert {row.dtype for row in learned} == {dtype}
        finished = events[-1]
        assert isinstance(finished, PlaceFinished)
        assert finished.dtype == dtype
        assert finished.same_output is True
        assert 0 < finished.largest_difference <= finished.tolerance
    counted = [row.dtype for row in only(PlaceRow, events) if "num_batches" in row.name]
    assert set(counted) <= {"int64"}  # whole numbers are not halved


def test_a_spoiled_half_is_more_than_rounding(monkeypatch: pytest.MonkeyPatch):
    move = PlacedModel.move

    def spoiling(thing: PlacedModel, copy: TimedCopy) -> None:
        move(thing, copy)
        with torch.no_grad():
            next(thing._model.parameters()).mul_(1.1)

    monkeypatch.setattr(PlacedModel, "move", spoiling)
    for name in NAMES:
        assert not ask(PlaceModel(model=name, device="cpu", dtype="float16"))[-1].same_output, name


@pytest.mark.parametrize(
    ("request_", "kind", "words"),
    [
        (PlaceModel(model="gpt", device="cpu"), FailureKind.BAD_REQUEST, "linear_10, linear_1000"),
        (PlaceModel(model="mlp", device="tpu"), FailureKind.NO_SUCH_DEVICE, "There is no tpu"),
        (PlaceModel(model="mlp", device="cpu", dtype="int3"), FailureKind.BAD_REQUEST, "float16"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(
    request_: PlaceModel, kind: FailureKind, words: str
):
    (failed,) = ask(request_)
    assert isinstance(failed, RequestFailed)
    assert failed.failure.kind is kind
    assert words in failed.failure.message


def test_a_move_that_breaks_off_leaves_no_half_moved_model(monkeypatch: pytest.MonkeyPatch):
    dispatcher = Dispatcher()
    ask(PlaceModel(model="mlp", device="cpu"), dispatcher)
    with monkeypatch.context() as patch:
        patch.setattr(PlacedModel, "move", lambda *_: 1 / 0)
        assert isinstance(ask(PlaceModel(model="mlp", device="cpu"), dispatcher)[-1], RequestFailed)
    assert isinstance(ask(PlaceModel(model="mlp", device="cpu"), dispatcher)[-1], PlaceFinished)


CPU, META = torch.device("cpu"), torch.device("meta")


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that moves with what is done: a copy takes 1 s, all else 100 s."""
    now_s = [0.0]

    def takes(module: Any, name: str, seconds: float) -> None:
        method = getattr(module, name)

        def slow(*args: Any, **kwargs: Any) -> Any:
            now_s[0] += seconds
            return method(*args, **kwargs)

        monkeypatch.setattr(module, name, slow)

    clock = SimpleNamespace(perf_counter=lambda: now_s[0])
    monkeypatch.setattr(placement, "time", clock)
    takes(torch.Tensor, "copy_", 1.0)
    for name in ("zero_", "to"):
        takes(torch.Tensor, name, 100.0)
    takes(torch, "empty_like", 100.0)
    return now_s


@pytest.mark.parametrize("dtype", [None, torch.float16])
def test_memory_and_conversions_are_before_the_clock(now_s: list[float], dtype: torch.dtype | None):
    copy = TimedCopy(META, dtype)
    moved = copy(torch.ones(4, 4))
    assert (moved.device, moved.dtype) == (META, dtype or torch.float32)
    assert now_s[0] > 100.0
    assert copy.elapsed_s == 1.0
    copy(torch.ones(4))
    assert copy.elapsed_s == 2.0


def test_what_is_there_already_is_no_copy(now_s: list[float]):
    copy, there = TimedCopy(CPU), torch.ones(4)
    assert copy(there) is there
    assert TimedCopy(CPU, torch.float16)(there).dtype is torch.float16
    assert copy.elapsed_s == 0.0


def test_whole_numbers_keep_their_type():
    assert TimedCopy(META, torch.float16)(torch.arange(4)).dtype is torch.int64


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4).T,
        torch.ones(0, 3),
        torch.ones(4, requires_grad=True),
    ],
    ids=["transposed", "empty", "with gradient"],
)
def test_every_tensor_arrives_with_its_shape(tensor: torch.Tensor):
    with torch.no_grad():
        moved = TimedCopy(META)(tensor)
    assert (moved.device, moved.shape, moved.dtype) == (META, tensor.shape, tensor.dtype)


@pytest.fixture
def to_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "resolve_device", lambda address: torch.device(address))
    monkeypatch.setattr(placement, "prove_kernels", lambda device: None)
    monkeypatch.setattr(placement, "free_bytes", lambda device: 1 << 40)
    monkeypatch.setattr(PlacedModel, "_output", lambda self: torch.ones(2, device="cpu"))


def test_a_models_time_is_that_of_its_copies(now_s: list[float], to_meta: None):
    finished = ask(PlaceModel(model="linear_10", device="meta"))[-1]
    assert isinstance(finished, PlaceFinished)
    assert finished.elapsed_s == 2.0  # a weight and a bias
