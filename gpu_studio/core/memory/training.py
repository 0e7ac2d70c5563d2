"""The memory that training needs: weights, gradients, the optimizer's state and its step.

``step()`` needs memory of its own, which counting copies overlooks. From torch 2.13's torch/optim,
and compared with PyTorch's own allocator by ``tests/soft/test_training.py``:

- Adam and AdamW keep two numbers per weight. On a card they use ``foreach`` by default, which
  computes the square roots of one of them for all weights at once: a whole additional copy.
  ``foreach=False`` goes tensor by tensor, with up to three tensors of that size at a time.
  ``fused=True`` needs no copy, and keeps its step counter on the card.
- SGD needs nothing more; with momentum it keeps one number per weight.
- With float32 masters the optimizer works on float32 copies of weights and gradients, in addition
  to the network's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.tensors import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.memory.allocator.blocks import Block
    from gpu_studio.core.memory.allocator.model import AllocatorModel

OPTIMIZERS = {"adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "sgd_momentum": "SGD with momentum"}
"""The modeled optimizers, with their display names."""
IMPLEMENTATIONS = {"foreach": "", "fused": "fused=True", "for_loop": "foreach=False"}
"""The implementations of the step, with the argument that selects each; PyTorch's default first."""
HALF_TYPES = ("float16", "bfloat16")
_MASTER = "float32"
_STEPS = 2
_STATES = {"adam": 2, "adamw": 2, "sgd": 0, "sgd_momentum": 1}


class TrainingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a network is trained.

    Attributes:
        optimizer: a key of `OPTIMIZERS`.
        implementation: a key of `IMPLEMENTATIONS`.
        has_masters: whether the optimizer has float32 copies of a network in a half type.
    """

    optimizer: str = "adam"
    implementation: str = "foreach"
    has_masters: bool = False

    @property
    def words(self) -> str:
        """The plan in words: ``Adam (fused=True) and float32 masters``."""
        way = IMPLEMENTATIONS[self.implementation]
        masters = " and float32 masters" if self.has_masters else ""
        return f"{OPTIMIZERS[self.optimizer]}{f' ({way})' if way else ''}{masters}"

    @property
    def states(self) -> int:
        """The number of values per weight that the optimizer keeps."""
        return _STATES[self.optimizer]

    @property
    def is_adam(self) -> bool:
        """Whether the step needs square roots."""
        return self.optimizer in ("adam", "adamw")

    def bytes_by_purpose(self, dtype: str) -> dict[str, int]:
        """Return the bytes per parameter for each purpose; the step's if it does all at once."""
        own, item = ITEM_BYTES[dtype], ITEM_BYTES[self.optimized_dtype(dtype)]
        return {
            "tensors": own,
            "gradients": own,
            "masters": 2 * item if self.has_masters else 0,
            "moments": self.states * item,
            "step": item if self.is_adam and self.implementation == "foreach" else 0,
        }

    def optimized_dtype(self, dtype: str) -> str:
        """Return the type that the optimizer works in."""
        return _MASTER if self.has_masters else dtype


def plans_for(dtype: str) -> list[TrainingPlan]:
    """Return the plans to offer for a network's type, PyTorch's default for Adam first."""
    plans = [
        TrainingPlan(optimizer=optimizer, implementation=implementation)
        for optimizer in OPTIMIZERS
        for implementation in (IMPLEMENTATIONS if _STATES[optimizer] == 2 else ("foreach",))
    ]
    if dtype in HALF_TYPES:
        plans += [msgspec.structs.replace(plan, has_masters=True) for plan in plans]
    return plans


def train(
    allocator: AllocatorModel, parameters: Sequence[int], dtype: str, plan: TrainingPlan
) -> None:
    """Run some training steps on an allocator, without activations.

    Args:
        allocator: an empty allocator; afterwards its peaks are the memory needed.
        parameters: the number of parameters in each tensor of the network.
        dtype: the type of weights and gradients.
        plan: how to train.

    Raises:
        ModelledOutOfMemory: the card has too little memory.
    """
    training = _Training(allocator, parameters, dtype, plan)
    for _ in range(_STEPS):
        training.step()


class _Training:
    def __init__(
        self, allocator: AllocatorModel, parameters: Sequence[int], dtype: str, plan: TrainingPlan
    ) -> None:
        self._allocator, self._plan = allocator, plan
        self._sizes = [count * ITEM_BYTES[dtype] for count in parameters]
        item_bytes = ITEM_BYTES[plan.optimized_dtype(dtype)]
        self._optimized = [count * item_bytes for count in parameters]
        self._kept = list(self._allocated(self._sizes))
        if plan.has_masters:
            self._kept += self._allocated(self._optimized)
        self._has_state = False

    def step(self) -> None:
        """Make the gradients, run the optimizer's step, and drop the gradients."""
        gradients = list(self._allocated(self._sizes))
        if self._plan.has_masters:
            gradients += self._allocated(self._optimized)
        if not self._has_state:
            self._make_state()
        if self._plan.is_adam:
            self._allocate_roots()
        self._free(gradients)

    def _make_state(self) -> None:
        self._has_state = True
        counts_on_card = self._plan.is_adam and self._plan.implementation == "fused"
        for size_bytes in self._optimized:
            if counts_on_card:
                self._kept.append(self._allocator.allocate(ITEM_BYTES[_MASTER]))
            self._kept += self._allocated([size_bytes] * self._plan.states)

    def _allocate_roots(self) -> None:
        if self._plan.implementation == "foreach":
            self._free(list(self._allocated(self._optimized)))
        if self._plan.implementation != "for_loop":
            return
        # denom = (exp_avg_sq.sqrt() / ...).add_(eps): the previous one is freed after the division.
        last: list[Block] = []
        for size_bytes in self._optimized:
            root, quotient = self._allocated([size_bytes] * 2)
            self._free([root, *last])
            last = [quotient]
        self._free(last)

    def _allocated(self, sizes: Sequence[int]) -> Iterator[Block]:
        return map(self._allocator.allocate, sizes)

    def _free(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self._allocator.free(block)
