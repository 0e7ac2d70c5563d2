"""The memory that a network needs, as a bar: on a card, or beyond its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.memory.tank import Tank, TankPart

if TYPE_CHECKING:
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice
    from gpu_studio.core.memory.token_speed import TokenReading
    from gpu_studio.core.memory.training import TrainingPlan

_WEIGHTS = ("tensors", "Weights", "the network itself")
_CACHE = ("cache", "KV cache", "keys and values of the context")
_ACTIVATIONS = ("activations", "Activations", "of one step, which writes one token for each text")
_PURPOSES = {
    "tensors": ("Weights", "the network itself"),
    "gradients": ("Gradients", "one number per weight, in the same type"),
    "masters": ("Float32 masters", "float32 copies of weights and gradients"),
    "moments": ("Optimizer state", "the numbers that the optimizer keeps for each weight"),
    "step": ("Step", "one more copy during step(): the square roots for all weights at once"),
}


def inference_tank(card: ModelledCardChoice, reserved_bytes: int, reading: TokenReading) -> Tank:
    """Return the tank with a network's weights, cache and activations; see `needed_tank`."""
    shares = {
        _WEIGHTS: reading.weights_bytes,
        _CACHE: reading.cache_bytes,
        _ACTIVATIONS: reading.activation_bytes,
    }
    kinds = tuple(kind for kind, size in shares.items() if size)
    return needed_tank(card, reserved_bytes, kinds, tuple(shares[kind] for kind in kinds))


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
