"""PyTorch's properties of the cards, and the result of one real kernel on each."""

from __future__ import annotations

from typing import Literal

import msgspec

from gpu_studio.core.messages.engine_messages import StartError, TorchCard  # noqa: TC001  # msgspec reads the annotations

Outcome = Literal["ran", "no_code", "busy", "lost", "out_of_memory", "failed", "died", "silent"]


class CardProbed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one real kernel on one card.

    Attributes:
        outcome: "ran": launched and synchronized, whatever the result. "died": the driver ended
            the process. "silent": the driver never returned from a call.
        message: the first line of the error.
        error_code: CUDA's error code, if PyTorch reports it.
        total: the sum that the kernels computed; None if they did not run.
        expected_total: the correct sum.
    """

    card: TorchCard
    outcome: Outcome
    message: str = ""
    error_code: int | None = None
    total: float | None = None
    expected_total: float | None = None

    @property
    def is_sum_wrong(self) -> bool:
        """Whether the kernels ran, but computed a wrong sum."""
        return self.total != self.expected_total


class PcProbed(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a separate process with your own environment that used CUDA.

    ``cards`` are in the order of that process, which is the order of your own scripts. ``error``
    says why CUDA did not start at all, ``start_error`` with which error.
    """

    cards: tuple[CardProbed, ...] = ()
    error: str | None = None
    start_error: StartError | None = None
    visible_devices: str | None = None


class ProbeStep(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the probe: CUDA's state, the card that comes next, or a card's result."""

    pc: PcProbed | None = None
    cards: tuple[TorchCard, ...] = ()
    begun: TorchCard | None = None
    probed: CardProbed | None = None
