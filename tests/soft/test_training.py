from typing import Any

import pytest

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
            "from tests.soft.training_memory import peak_of\n"
            f"peak_of({name!r}, {SIZES}, {dtype!r}, **{options!r})"
        )
        need = ModelFit(card_at("model:12000"), network, kind, plan).training
        assert need is not None
        assert need.least_bytes == pytest.approx(measured, rel=0.02), (plan, dtype)
