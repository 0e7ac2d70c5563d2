"""Finds what fits on a card by asking the allocator model, not by dividing.

A formula ignores that requests are rounded, that segments are shared, and that the context uses
memory, too. Each question here goes to a model of the whole allocator, which finds the largest size
that fits by search.

The number of parameters alone does not decide how much memory a network needs. So the model also
gets the shapes that pack best and worst, and the answer is a range. To write text, a language model
also keeps a KV cache and activations (`token_speed`); they are in the answer if its shape is known.
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
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, WeightsFormat, network_of_count
from gpu_studio.core.memory.token_speed import TokenReading, token_reading
from gpu_studio.core.memory.training import HALF_TYPES, TrainingPlan, train
from gpu_studio.core.memory.weights.weight_types import KEPT_TYPES
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.core.units import format_bytes, format_count, format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice


# Tensors of these numbers of parameters fill PyTorch's segments of 2 MiB, or of their own size,
# without a gap in every dtype.
_LARGE, _MIDDLE, _SMALL = 4096 * 4096, 1 << 20, 1 << 17
_MOST_TENSORS, _MOST_SMALL = 300, 1000
# PyTorch asks the driver for 2 MiB at a time for tensors of up to 1 MiB, and for 20 MiB up to
# 10 MiB (c10/cuda/CUDACachingAllocator.cpp). It rounds every tensor up to 512 bytes.
_SMALL_SEGMENT, _LARGE_SEGMENT, _ROUNDED_TO = 2 << 20, 20 << 20, 512
_TINY, _MOST_TINY = 64, 4000
_LARGEST_BATCH = 1 << 27
_MOST_MODELLED = 50_000  # tensors, each of which is asked of the model
_MOSTLY = 0.9
_TRAINED_TYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}
_ENDLESS = 1 << 62


class MemoryNeed(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that PyTorch reserves for a network, by the shapes of its tensors.

    Attributes:
        least_bytes, most_bytes: the same if the tensors are known.
        fits: whether a card has room for it; None if that depends on the shapes.
    """

    least_bytes: int
    most_bytes: int
    fits: bool | None

    @property
    def range_text(self) -> str:
        """The need in words: ``9.31 GiB to 14.0 GiB``."""
        least, most = format_bytes(self.least_bytes), format_bytes(self.most_bytes)
        return least if least == most else f"{least} to {most}"

    @property
    def decisive_bytes(self) -> int:
        """The need to show on a card: the least if even that does not fit, else the most."""
        return self.least_bytes if self.fits is False else self.most_bytes

    @property
    def verdict(self) -> str:
        """Whether it fits, in words."""
        if self.fits is None:
            return "may fit, depending on the shapes of its tensors"
        return "fits" if self.fits else "does not fit"


class ModelFit(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a network fits.

    Attributes:
        network: the network's name; empty if only its number of parameters is known.
        dtype: the type of the weights: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        inference: the memory for the weights, and for cache and activations if `reading` has them.
        reading: what writing text keeps and reads.
        trained_as: the type to train in; empty for one in which PyTorch does not train.
        training: the most memory for training, without activations; Adam reaches it inside
            ``step()``. None for a type in which PyTorch does not train.
        optimizer, implementation, has_masters: the training plan (`TrainingPlan`).
        fused: the same with ``fused=True``, if that fits and this plan may not.
    """

    network: str = ""
    parameters: int
    dtype: str
    inference: MemoryNeed
    reading: TokenReading
    training: MemoryNeed | None
    trained_as: str = ""
    optimizer: str
    implementation: str
    has_masters: bool
    fused: MemoryNeed | None = None

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
        fused = (
            f" With fused=True it reserves {self.fused.range_text} and fits." if self.fused else ""
        )
        count = f"{_count(self.parameters)} parameters {_in_type(self.dtype)}"
        network = f"{self.network}, with {count}," if self.network else f"A network with {count}"
        reading = self.reading
        kept = "weights"
        if reading.cache_bytes:
            kept = f"weights and for {format_bytes(reading.cache_bytes)} of KV cache"
        inference = (
            f"{network} reserves {self.inference.range_text} for its {kept}: inference "
            f"{self.inference.verdict}. "
        )
        if self.training is None:
            return f"{inference}PyTorch does not train them in this type."
        also = "Training needs additional memory for its activations."
        if not reading.cache_bytes:
            also = "Activations need additional memory in both cases."
        return (
            f"{inference}Training "
            f"with {self.plan.words} reserves {self.training.range_text} at its peak "
            f"and {self.training.verdict}.{fused} {also}"
        )


def _in_type(kind: str) -> str:
    return f"in {kind}" if kind != AS_IN_FILE else "as they are in the file"


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
            f"the largest square float32 matrix that fits is {format_size(side)} "
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
        card: a simulated card; or a real one as CUDA sees it, with all used memory as its context.
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
    network: int | Network,
    dtype: str,
    conf: str = "",
    plan: TrainingPlan | None = None,
    *,
    context: int | None = None,
    batch: int = 1,
) -> ModelFit:
    """Return whether a network can be used and trained on a card.

    Args:
        card: the card.
        network: its tensors, or only its number of parameters.
        dtype: the type of weights and gradients: `AS_IN_FILE` or a key of `KEPT_TYPES`.
        conf: the allocator's options.
        plan: how to train; if None, with Adam and PyTorch's defaults.
        context: see `token_reading`.
        batch: see `token_reading`.

    Raises:
        StudioError: float32 masters of a network that is not in a half type.
    """
    plan = plan or TrainingPlan()
    if plan.has_masters and dtype not in HALF_TYPES:
        raise StudioError(
            FailureKind.DTYPE_UNSUPPORTED,
            f"Float32 masters are for float16 and bfloat16, not for {dtype}.",
        )
    network = network_of_count(network) if isinstance(network, int) else network
    if network.is_packed and dtype != AS_IN_FILE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The weights of {network.name} are packed: they are known only as they are in the "
            "file.",
        )
    reading = token_reading(network, dtype, context, batch)
    training = fused = None
    trained_as = _trained_type(network, dtype)
    if trained_as is not None:
        training = _training_need(card, conf, network, trained_as, plan)
        if not training.fits and plan.implementation != "fused":
            other = msgspec.structs.replace(plan, implementation="fused")
            fused = _training_need(card, conf, network, trained_as, other)
    return ModelFit(
        network=network.name,
        parameters=network.parameters,
        dtype=dtype,
        inference=_inference_need(card, conf, network, dtype, reading),
        reading=reading,
        training=training,
        trained_as=trained_as or "",
        optimizer=plan.optimizer,
        implementation=plan.implementation,
        has_masters=plan.has_masters,
        fused=fused if fused and fused.fits else None,
    )


def _training_need(
    card: ModelledCardChoice, conf: str, network: Network, dtype: str, plan: TrainingPlan
) -> MemoryNeed:
    """Return the memory for a step of training without activations."""
    items = (ITEM_BYTES[dtype], ITEM_BYTES[plan.optimized_dtype(dtype)])
    step = partial(train, dtype=dtype, plan=plan)
    return _need(
        card, conf, _shapes(network, items), lambda one: partial(step, parameters=one.tensors)
    )


def _inference_need(
    card: ModelledCardChoice, conf: str, network: Network, dtype: str, reading: TokenReading
) -> MemoryNeed:
    """Return the memory for weights, cache and activations."""
    others = [reading.cache_bytes // (2 * max(1, reading.layers))] * (2 * max(1, reading.layers))
    others = [size for size in (*others, reading.activation_bytes) if size]
    if dtype == AS_IN_FILE:
        sizes = network.sizes_bytes
        # llama.cpp keeps all weights of a device in one piece; so does the model if it is too long.
        if network.format is WeightsFormat.GGUF or len(sizes) > _MOST_MODELLED:
            sizes = (reading.weights_bytes,)
        shapes = [_Shape(sizes)]
        kind = None
    else:
        kind = KEPT_TYPES[dtype]
        shapes = _shapes(network, (kind.block_bytes / kind.block,))

    def asked(shape: _Shape) -> Callable[[AllocatorModel], None]:
        weights = shape.tensors if kind is None else [kind.size_bytes(n) for n in shape.tensors]

        def infer(allocator: AllocatorModel) -> None:
            for size in (*weights, *(-(-size // shape.times) for size in others)):
                allocator.allocate(size)

        return infer

    return _need(card, conf, shapes, asked)


def _trained_type(network: Network, dtype: str) -> str | None:
    """Return the type to train in; None if PyTorch does not train in it."""
    if dtype in ITEM_BYTES:
        return dtype
    if dtype != AS_IN_FILE or network.is_packed:
        return None
    types = network.types_bytes
    main = max(types, key=lambda name: types[name])
    is_pure = types[main] > _MOSTLY * sum(types.values())
    return _TRAINED_TYPES.get(main) if is_pure else None


class _Shape(msgspec.Struct, frozen=True):
    """The tensors of a network, which has them several times."""

    tensors: Sequence[int]
    times: int = 1


def _shapes(network: Network, item_bytes: Iterable[float]) -> list[_Shape]:
    """Return the tensors of a network, or those that it may have."""
    if not 0 < len(network.tensors) <= _MOST_MODELLED:
        return list(_shapes_of(network.parameters, sorted(set(item_bytes))))
    return [_Shape(network.tensors)]


def _shapes_of(parameters: int, item_bytes: Sequence[float]) -> Iterator[_Shape]:
    """Yield the tensors that a network may have: those that pack best first, then bad ones."""
    large = _LARGE * -(-parameters // (_LARGE * _MOST_TENSORS))
    yield _Shape(_split(parameters, large, _LARGE, _SMALL))
    # foreach=False needs three more of the largest tensor: small ones need the least.
    for size in (_SMALL, _MIDDLE):
        if parameters <= size * _MOST_SMALL:
            yield _Shape(_split(parameters, size, _SMALL))
            break
    yield _Shape([parameters])
    if parameters <= _TINY * _MOST_TINY:
        yield _Shape(_split(parameters, _TINY))
    for item in item_bytes:
        # Two of these fit in a segment, and a third does not by a hair.
        small, large = (
            int((s // 3 + _ROUNDED_TO) / item) for s in (_SMALL_SEGMENT, _LARGE_SEGMENT)
        )
        times = -(-parameters // (large * _MOST_TENSORS))
        yield _Shape(_split(-(-parameters // times), large), times)
        # One tensor that asks for a whole large segment, beside small ones.
        alone = int(_SMALL_SEGMENT // 2 / item) + 1
        if alone < parameters <= small * _MOST_TENSORS:
            yield _Shape([alone, *_split(parameters - alone, small)])


def _split(parameters: int, *sizes: int) -> list[int]:
    """Return tensors of the first size, then of the next ones, and a last one with the rest."""
    tensors: list[int] = []
    for size in sizes:
        whole, parameters = divmod(parameters, size)
        tensors += [size] * whole
    return [*tensors, parameters] if parameters else tensors


def _need(
    card: ModelledCardChoice,
    conf: str,
    shapes: Sequence[_Shape],
    asked: Callable[[_Shape], Callable[[AllocatorModel], None]],
) -> MemoryNeed:
    """Return the peaks of the reserved bytes and whether the card has room for them."""
    peaks: list[int] = []
    fits: set[bool] = set()
    for shape in shapes:
        roomy, ask = AllocatorModel(_ENDLESS, conf=conf), asked(shape)
        ask(roomy)
        peaks.append(shape.times * roomy.stats()["reserved_bytes.all.peak"])
        try:
            own = AllocatorModel(
                card.total_bytes // shape.times, card.context_bytes // shape.times, conf=conf
            )
            ask(own)
            fits.add(True)
        except ModelledOutOfMemory:
            fits.add(False)
    return MemoryNeed(
        least_bytes=min(peaks), most_bytes=max(peaks), fits=fits.pop() if len(fits) == 1 else None
    )


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
