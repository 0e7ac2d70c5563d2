"""What training asks of PyTorch's allocator: weights, gradients, the optimizer's state, its step.

``step()`` needs memory of its own, which a count of copies forgets. Read in torch 2.13's
torch/optim, and held against PyTorch's own allocator by ``tests/soft/test_training.py``:

- Adam and AdamW keep two numbers a weight. Their usual way on a card, ``foreach``, makes the square
  roots of one of them for all weights at once: a whole copy more. ``foreach=False`` makes them
  tensor by tensor, with up to three of that tensor's size at a time. ``fused=True`` makes none, and
  keeps its counter of steps on the card.
- SGD needs nothing more, and with momentum keeps one number a weight.
- With float32 masters the optimizer works on float32 copies of weights and gradients beside those
  of the network.
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
"""The optimizers that are modelled, with their names for people."""
IMPLEMENTATIONS = {"foreach": "", "fused": "fused=True", "for_loop": "foreach=False"}
"""The ways of their step, with the argument that chooses each; PyTorch's own choice is first."""
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
        """The plan as people write it: ``Adam (fused=True) and float32 masters``."""
        way = IMPLEMENTATIONS[self.implementation]
        masters = " and float32 masters" if self.has_masters else ""
        return f"{OPTIMIZERS[self.optimizer]}{f' ({way})' if way else ''}{masters}"

    @property
    def states(self) -> int:
        """How many numbers a weight the optimizer keeps."""
        return _STATES[self.optimizer]

    @property
    def is_adam(self) -> bool:
        """Whether the step needs square roots."""
        return self.optimizer in ("adam", "adamw")

    def bytes_by_purpose(self, dtype: str) -> dict[str, int]:
        """Return the bytes a parameter of each purpose; the step's are those of all at once."""
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
    """Return the plans to offer for a network in a type, PyTorch's own choice for Adam first."""
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
    """Ask an allocator for what some steps of training ask for; activations are left out.

    Args:
        allocator: an empty one; afterwards its peaks tell what was needed.
        parameters: how many each tensor of the network has.
        dtype: of weights and gradients.
        plan: how it is trained.

    Raises:
        ModelledOutOfMemory: there is no room.
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
        """Make the gradients, go through the optimizer's step, and drop the gradients."""
        gradients = list(self._allocated(self._sizes))
        if self._plan.has_masters:
            gradients += self._allocated(self._optimized)
        if not self._has_state:
            self._make_state()
        if self._plan.is_adam:
            self._take_roots()
        self._free(gradients)

    def _make_state(self) -> None:
        self._has_state = True
        counts_on_card = self._plan.is_adam and self._plan.implementation == "fused"
        for size_bytes in self._optimized:
            if counts_on_card:
                self._kept.append(self._allocator.allocate(ITEM_BYTES[_MASTER]))
            self._kept += self._allocated([size_bytes] * self._plan.states)

    def _take_roots(self) -> None:
        if self._plan.implementation == "foreach":
            self._free(list(self._allocated(self._optimized)))
        if self._plan.implementation != "for_loop":
            return
        # denom = (exp_avg_sq.sqrt() / ...).add_(eps): the one before is dropped after the division.
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
