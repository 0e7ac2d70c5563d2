import pytest

from gpu_studio.core.memory.fit import HALF_TYPES, TrainingPlan
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.catalogue import RTX_3060

# Like a network's: matrices, some odd ones, and many vectors that share small segments.
SIZES = [1 << 20] * 12 + [3_000_001] * 3 + [1000] * 20 + [6_400_000]
OPTIONS = {
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "sgd": ("SGD", {}),
    "sgd_momentum": ("SGD", {"momentum": 0.9}),
}
TYPES = [(dtype, precision) for dtype in HALF_TYPES for precision in ("plain", "masters")]


@pytest.mark.parametrize(
    ("optimizer", "is_fused"),
    [*((optimizer, False) for optimizer in OPTIONS), ("adam", True), ("adamw", True)],
)
def test_what_training_needs_is_within_two_percent(
    optimizer: str, is_fused: bool, soft_pc: MakePc, child: MakeChild
) -> None:
    one = child(soft_pc(RTX_3060), TORCH_CPP_LOG_LEVEL="ERROR")
    name, options = OPTIONS[optimizer]
    if is_fused:
        options = {**options, "fused": True}
    for dtype, precision in [("float32", "plain"), *TYPES]:
        plan = TrainingPlan(optimizer=optimizer, is_fused=is_fused, precision=precision)
        measured = one.run(
            "from tests.soft.training_memory import peak_of\n"
            f"peak_of({name!r}, {SIZES}, {dtype!r}, has_masters={precision == 'masters'}, "
            f"**{options!r})"
        )
        need = sum(SIZES) * sum(plan.bytes_by_purpose(dtype).values())
        assert need == pytest.approx(measured, rel=0.02), (plan, dtype)
