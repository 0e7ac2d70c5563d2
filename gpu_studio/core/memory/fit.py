"""Finds what fits on a card by asking the allocator model, not by dividing.

A formula ignores that requests are rounded, that segments are shared, and that the context uses
memory, too. Each question here goes to a model of the whole allocator, which finds the largest size
that fits by search.
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.allocator.errors import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.memory.tank import Tank, TankPart
from gpu_studio.core.memory.training import HALF_TYPES, TrainingPlan, train
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.core.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice


MOST_PARAMETERS = 10**14
# The matrices of a large network, 4096 × 4096; at most this many of them are modeled.
_TENSOR_PARAMETERS = 4096 * 4096
_MOST_TENSORS = 1000
_LARGEST_BATCH = 1 << 27


class ModelFit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a network with a given number of parameters fits, without activations.

    Attributes:
        inference_bytes: the memory that PyTorch reserves for the weights.
        training_bytes: the most that it reserves for training; Adam reaches it inside ``step()``.
        optimizer, implementation, has_masters: the training plan (`TrainingPlan`).
        fused_bytes: the same with ``fused=True``, if that fits and this plan does not.
    """

    parameters: int
    dtype: str
    inference_bytes: int
    inference_fits: bool
    training_bytes: int
    training_fits: bool
    optimizer: str
    implementation: str
    has_masters: bool
    fused_bytes: int | None = None

    @property
    def plan(self) -> TrainingPlan:
        """The training plan."""
        return TrainingPlan(
            optimizer=self.optimizer,
            implementation=self.implementation,
            has_masters=self.has_masters,
        )

    @property
    def sentence(self) -> str:
        """The answer in words."""
        infers = "fits" if self.inference_fits else "does not fit"
        trains = "fits" if self.training_fits else "does not fit"
        fused = (
            f" With fused=True it reserves {format_bytes(self.fused_bytes)} and fits."
            if self.fused_bytes is not None
            else ""
        )
        return (
            f"A network with {_count(self.parameters)} parameters in {self.dtype} reserves "
            f"{format_bytes(self.inference_bytes)} for its weights: inference {infers}. Training "
            f"with {self.plan.words} reserves {format_bytes(self.training_bytes)} at its peak "
            f"and {trains}.{fused} Activations need additional memory in both cases."
        )


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The largest sizes that fit on a card.

    Attributes:
        free_bytes: the memory left beside the context and other processes.
        largest_square_side: the side of the largest float32 matrix.
        largest_training_batch, largest_inference_batch: for the sample network
            (`core.memory.activation_calls`); 0 if not even one sample fits.
    """

    name: str
    total_bytes: int
    free_bytes: int
    conf: str
    largest_square_side: int
    largest_training_batch: int
    largest_inference_batch: int

    @property
    def sentence(self) -> str:
        """The answer in words."""
        side = self.largest_square_side
        matrix = (
            f"the largest square float32 matrix that fits is {side} × {side} "
            f"({format_bytes(4 * side * side)})"
            if side
            else "no float32 matrix fits"
        )
        return (
            f"With {format_bytes(self.free_bytes)} of {format_bytes(self.total_bytes)} free, "
            f"{matrix}. The largest batch of the sample network is "
            f"{format_count(self.largest_training_batch)} in training and "
            f"{format_count(self.largest_inference_batch)} under torch.no_grad()."
        )


def fit_on(card: ModelledCardChoice, conf: str = "") -> Fit:
    """Return the largest sizes on a card that no other program uses.

    Args:
        card: a modeled card; or a real one as CUDA sees it, with all used memory as its context.
        conf: the allocator's options.
    """
    return Fit(
        name=card.name,
        total_bytes=card.total_bytes,
        free_bytes=card.free_bytes,
        conf=conf,
        largest_square_side=largest_square_side(card, conf),
        largest_training_batch=largest_batch(card, conf, trains=True),
        largest_inference_batch=largest_batch(card, conf, trains=False),
    )


def largest_square_side(card: ModelledCardChoice, conf: str = "") -> int:
    """Return the side of the largest square float32 matrix on an empty card; 0 if none fits."""

    def fits(side: int) -> bool:
        try:
            _allocator(card, conf).allocate(4 * side * side)
        except ModelledOutOfMemory:
            return False
        return True

    return _largest(fits, math.isqrt(card.total_bytes // 4) + 1)


def largest_batch(card: ModelledCardChoice, conf: str = "", *, trains: bool) -> int:
    """Return the largest batch of the sample network on an empty card; 0 if none fits."""

    def fits(batch: int) -> bool:
        memory = ModelledMemory(card, conf)
        try:
            network = memory.sample_network()
            for _ in network.train(batch) if trains else network.infer(batch):
                pass
        except ModelledOutOfMemory:
            return False
        return True

    return _largest(fits, _LARGEST_BATCH)


def model_fit(
    card: ModelledCardChoice,
    parameters: int,
    dtype: str,
    conf: str = "",
    plan: TrainingPlan | None = None,
) -> ModelFit:
    """Return whether a network with this many parameters can be used and trained on a card.

    Args:
        card: the card.
        parameters: the number of parameters.
        dtype: the type of weights and gradients.
        conf: the allocator's options.
        plan: how to train; if None, with Adam and PyTorch's defaults.

    Raises:
        StudioError: float32 masters of a network that is not in a half type.
    """
    plan = plan or TrainingPlan()
    if plan.has_masters and dtype not in HALF_TYPES:
        raise StudioError(
            FailureKind.DTYPE_UNSUPPORTED,
            f"Float32 masters are for float16 and bfloat16, not for {dtype}.",
        )
    counts = _tensors_of(parameters)

    def infer(allocator: AllocatorModel) -> None:
        for count in counts:
            allocator.allocate(count * ITEM_BYTES[dtype])

    def trained(plan: TrainingPlan) -> tuple[int, bool]:
        ask = partial(train, parameters=counts, dtype=dtype, plan=plan)
        return _reserved(card, conf, ask, 16 * ITEM_BYTES["float64"] * parameters)

    inference_bytes, inference_fits = _reserved(card, conf, infer, 8 * parameters)
    training_bytes, training_fits = trained(plan)
    fused_bytes = None
    if not training_fits and plan.implementation != "fused":
        needed, fits = trained(msgspec.structs.replace(plan, implementation="fused"))
        fused_bytes = needed if fits else None
    return ModelFit(
        parameters=parameters,
        dtype=dtype,
        inference_bytes=inference_bytes,
        inference_fits=inference_fits,
        training_bytes=training_bytes,
        training_fits=training_fits,
        optimizer=plan.optimizer,
        implementation=plan.implementation,
        has_masters=plan.has_masters,
        fused_bytes=fused_bytes,
    )


def _tensors_of(parameters: int) -> list[int]:
    """Return the number of parameters in each tensor of a network of unknown shape."""
    each = max(_TENSOR_PARAMETERS, -(-parameters // _MOST_TENSORS))
    whole, rest = divmod(parameters, each)
    return [each] * whole + ([rest] if rest else [])


def _reserved(
    card: ModelledCardChoice, conf: str, ask: Callable[[AllocatorModel], None], most_bytes: int
) -> tuple[int, bool]:
    """Return the peak of the reserved bytes and whether the card has room for it."""
    roomy = AllocatorModel(2 * most_bytes + (1 << 40), conf=conf)
    ask(roomy)
    try:
        ask(_allocator(card, conf))
    except ModelledOutOfMemory:
        return roomy.stats()["reserved_bytes.all.peak"], False
    return roomy.stats()["reserved_bytes.all.peak"], True


def _allocator(card: ModelledCardChoice, conf: str) -> AllocatorModel:
    return AllocatorModel(card.total_bytes, card.context_bytes, conf=conf)


def _largest(fits: Callable[[int], bool], beyond: int) -> int:
    """Return the largest number that fits, given one that does not."""
    low, high = 0, beyond
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _count(number: int) -> str:
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if number >= size:
            return f"{number / size:g} {word}"
    return str(number)


_SCALES = {
    "": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "b": 10**9, "g": 10**9,
    "billion": 10**9, "t": 10**12, "trillion": 10**12,
}  # fmt: skip
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)([a-z]*)", re.ASCII)
_WEIGHTS = (("tensors", "Weights", "the network itself"),)
_PURPOSES = {
    "tensors": ("Weights", "the network itself"),
    "gradients": ("Gradients", "one number per weight, in the same type"),
    "masters": ("Float32 masters", "float32 copies of weights and gradients"),
    "moments": ("Optimizer state", "the numbers that the optimizer keeps for each weight"),
    "step": ("Step", "one more copy during step(): the square roots for all weights at once"),
}


def parse_count(text: str) -> int | None:
    """Return a number of parameters as people write it: ``7B``, ``350 M``, ``1e9``, ``1,000``.

    None for anything else.
    """
    plain = re.sub(r"[\s,_'’]", "", text.strip().lower())
    match = _COUNT.fullmatch(plain)
    if match is None or match[2] not in _SCALES:
        return None
    count = float(match[1]) * _SCALES[match[2]]
    return round(count) if math.isfinite(count) else None


def inference_tank(card: ModelledCardChoice, reserved_bytes: int) -> Tank:
    """Return the tank with a network's weights; see `needed_tank`."""
    return needed_tank(card, reserved_bytes, _WEIGHTS, (1,))


def training_tank(
    card: ModelledCardChoice, reserved_bytes: int, dtype: str, plan: TrainingPlan
) -> Tank:
    """Return the tank with everything that training needs; see `needed_tank`."""
    shares = {key: size for key, size in plan.bytes_by_purpose(dtype).items() if size}
    kinds = tuple((key, *_PURPOSES[key]) for key in shares)
    return needed_tank(card, reserved_bytes, kinds, tuple(shares.values()))


def needed_tank(
    card: ModelledCardChoice,
    reserved_bytes: int,
    kinds: tuple[tuple[str, str, str], ...],
    shares: tuple[int, ...],
) -> Tank:
    """Return the memory needed on a card, with the card's end if it needs more than there is.

    Args:
        card: the card's size and the memory that CUDA uses.
        reserved_bytes: the memory that PyTorch would reserve.
        kinds: key, label and explanation of each purpose, from left to right.
        shares: the ratio between the purposes.
    """
    parts = [
        TankPart(
            key="context", label="CUDA context", size_bytes=card.context_bytes,
            explanation="about as much as CUDA uses before any work",
        )
    ]  # fmt: skip
    left = reserved_bytes
    for index, (key, label, explanation) in enumerate(kinds):
        size = reserved_bytes * shares[index] // sum(shares) if index < len(kinds) - 1 else left
        left -= size
        parts.append(TankPart(key=key, label=label, size_bytes=size, explanation=explanation))
    free_bytes = card.total_bytes - card.context_bytes - reserved_bytes
    if free_bytes < 0:
        needed = card.context_bytes + reserved_bytes
        return Tank(total_bytes=needed, parts=tuple(parts), card_bytes=card.total_bytes)
    parts.append(
        TankPart(
            key="free", label="Free", size_bytes=free_bytes,
            explanation="left for activations, which are not included",
        )
    )  # fmt: skip
    return Tank(total_bytes=card.total_bytes, parts=tuple(parts))
