"""What a network takes of a card as a tank, with what is missing where it does not fit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.memory.tank import Tank, TankPart

if TYPE_CHECKING:
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice

_SCALES = {
    "": 1, "k": 10**3, "thousand": 10**3, "m": 10**6, "million": 10**6, "b": 10**9, "g": 10**9,
    "billion": 10**9, "t": 10**12, "trillion": 10**12,
}  # fmt: skip
_COUNT = re.compile(r"(\d+(?:\.\d+)?(?:e\d{1,2})?)([a-z]*)", re.ASCII)
_WEIGHTS = (("tensors", "Weights", "what the network is"),)
_TRAINING = (
    *_WEIGHTS,
    ("gradients", "Gradients", "one number a weight, in its type"),
    ("moments", "Adam's moments", "two numbers a weight: exp_avg and exp_avg_sq"),
)


def parse_count(text: str) -> int | None:
    """Return a number of parameters as people write it: ``7B``, ``350 M``, ``1e9``, ``1,000``.

    None for anything else.
    """
    plain = re.sub(r"[\s,_'’]", "", text.strip().lower())
    match = _COUNT.fullmatch(plain)
    if match is None or match[2] not in _SCALES:
        return None
    return round(float(match[1]) * _SCALES[match[2]])


def inference_tank(card: ModelledCardChoice, reserved_bytes: int) -> Tank:
    """Return the tank with a network's weights in it; see `needed_tank`."""
    return needed_tank(card, reserved_bytes, _WEIGHTS, (1,))


def training_tank(card: ModelledCardChoice, reserved_bytes: int) -> Tank:
    """Return the tank with weights, gradients and Adam's moments in it; see `needed_tank`."""
    return needed_tank(card, reserved_bytes, _TRAINING, (1, 1, 2))


def needed_tank(
    card: ModelledCardChoice,
    reserved_bytes: int,
    kinds: tuple[tuple[str, str, str], ...],
    shares: tuple[int, ...],
) -> Tank:
    """Return what is needed of a card, and where the card ends if that is more than it has.

    Args:
        card: how much it has, and what CUDA takes of it.
        reserved_bytes: what PyTorch would reserve.
        kinds: key, label and explanation of what it is for, from left to right.
        shares: how the need divides among them.
    """
    parts = [
        TankPart(
            key="context", label="CUDA context", size_bytes=card.context_bytes,
            explanation="about what is taken before anything is done",
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
            explanation="left for activations, which are not counted",
        )
    )  # fmt: skip
    return Tank(total_bytes=card.total_bytes, parts=tuple(parts))
