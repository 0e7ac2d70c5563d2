from typing import Any

import pytest
import torch

from gpu_studio.core.memory.fit import ModelFit
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.networks import Network
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import RTX_3060

# Like a network's: matrices, some odd ones, and many vectors that share small segments.
SIZES = [1 << 20] * 12 + [3_000_001] * 3 + [1000] * 20 + [6_400_000]


@pytest.mark.parametrize(
    ("plan", "name", "options"),
    [
        ("Adam", "Adam", {}),
        ("Adam", "AdamW", {}),
        ("Adam (fused=True)", "Adam", {"fused": True}),
        ("SGD with momentum", "SGD", {"momentum": 0.9}),
        ("SGD", "SGD", {}),
    ],
)
def test_what_training_needs_is_within_two_percent(
    plan: str, name: str, options: dict[str, Any], soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(soft_pc(RTX_3060), TORCH_CPP_LOG_LEVEL="ERROR")
    network = Network(parameters=sum(SIZES))
    for dtype, kind in (("float32", "float32"), ("float16", "16-bit"), ("bfloat16", "16-bit")):
        measured = one.run(
            "from tests.soft.test_training import peak_of\n"
            f"peak_of({name!r}, {SIZES}, {dtype!r}, **{options!r})"
        )
        need = ModelFit(card_at("model:12000"), network, kind, plan).training
        assert need is not None
        assert need.least_bytes == pytest.approx(measured, rel=0.02), (plan, dtype)


def peak_of(optimizer: str, sizes: list[int], dtype: str, **options: Any) -> int:
    """Return the most that three steps allocated, in bytes.

    Args:
        optimizer: its name in ``torch.optim``.
        sizes: the numbers in each tensor of the network.
        dtype: of the weights and gradients.
        options: of the optimizer.
    """
    torch.cuda.init()
    torch.empty(1, device="cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    kind = getattr(torch, dtype)
    weights = [torch.empty(size, dtype=kind, device="cuda") for size in sizes]
    created = getattr(torch.optim, optimizer)(weights, lr=0.1, **options)
    for _ in range(3):
        for weight in weights:
            weight.grad = torch.empty_like(weight)
        created.step()
        created.zero_grad(set_to_none=True)
    return int(torch.cuda.memory_stats()["allocated_bytes.all.peak"])
