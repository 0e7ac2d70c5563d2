"""What the model says of training is what PyTorch's allocator does, within two percent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.training import HALF_TYPES, TrainingPlan, train
from tests.softcards.catalogue import RTX_3060

if TYPE_CHECKING:
    from tests.soft.child import Child
    from tests.soft.conftest import MakeChild, MakePc

# Like a network's: matrices, some odd ones, and many vectors that share small segments.
SIZES = [1 << 20] * 12 + [3_000_001] * 3 + [1000] * 20 + [6_400_000]
OPTIONS = {
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "sgd": ("SGD", {}),
    "sgd_momentum": ("SGD", {"momentum": 0.9}),
}
WAYS = {"foreach": {}, "for_loop": {"foreach": False}, "fused": {"fused": True}}
TYPES = [(dtype, masters) for dtype in HALF_TYPES for masters in (False, True)]


def measured(one: Child, plan: TrainingPlan, dtype: str) -> dict[str, int]:
    name, options = OPTIONS[plan.optimizer]
    options = {**options, **WAYS[plan.implementation]}
    output = one.run(
        "from tests.soft.training_memory import peak_of\n"
        f"peak_of({name!r}, {SIZES}, {dtype!r}, has_masters={plan.has_masters}, **{options!r})"
    )
    assert isinstance(output, dict)
    return output


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer", OPTIONS)
def test_the_model_of_training_is_within_two_percent(
    optimizer: str, way: str, soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(soft_pc(RTX_3060), TORCH_CPP_LOG_LEVEL="ERROR")
    for dtype, has_masters in [("float32", False), *TYPES]:
        plan = TrainingPlan(optimizer=optimizer, implementation=way, has_masters=has_masters)
        real = measured(one, plan, dtype)
        model = AllocatorModel(12 << 30)
        train(model, SIZES, dtype, plan)
        for kind in ("allocated", "reserved"):
            result = model.stats()[f"{kind}_bytes.all.peak"]
            assert result == pytest.approx(real[kind], rel=0.02), (plan, dtype, kind)
