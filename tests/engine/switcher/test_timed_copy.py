from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpu_studio.core.messages.placement_messages import PlaceFinished, PlaceModel
from gpu_studio.engine.switcher import placement
from gpu_studio.engine.switcher.placement import PlacedModel, TimedCopy
from tests.engine.answers import ask

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
