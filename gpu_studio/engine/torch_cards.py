"""PyTorch's description of each card, without a CUDA context."""

from __future__ import annotations

import logging

from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.engine.device import accelerator, accelerator_state, start_accelerator

_log = logging.getLogger(__name__)


def torch_cards() -> tuple[TorchCard, ...]:
    """Return the cards that PyTorch sees, in its order; facts missing in an old one are None."""
    if not accelerator_state().is_available:
        return ()
    start_accelerator()
    return tuple(torch_card(index) for index in range(accelerator().count()))


def torch_card(index: int) -> TorchCard:
    """Return one card; only its number if PyTorch fails to describe it."""
    cards = accelerator()
    try:
        return cards.card(index)
    except (RuntimeError, UnicodeDecodeError) as error:
        _log.warning("PyTorch cannot describe %s:%s: %s", cards.kind, index, error)
        return TorchCard(
            torch_index=index, name=f"{cards.maker} card", kind=cards.kind, maker=cards.maker
        )
