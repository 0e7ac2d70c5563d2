"""The faults that a check makes on purpose, in what comes back from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.telemetry import Telemetry

if TYPE_CHECKING:
    from torch import Tensor

    from gpu_studio.core.messages.check_messages import PlantKind

# A complex number of 16 bytes is two whole numbers.
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}
_SLOW_STEP, _SLOW_EVERY, _SLOW_FACTOR = 6, 7, 10.0
_HOT_C, _FAR_TOO_HOT_C = 97.0, 105.0
LATE_FROM_S = 13.0
"""A fault that begins late begins so many seconds after the start of a round."""
_LATE_MHZ = 300.0
_SLOW_MEMORY = 1.25


def bits_of(values: Tensor) -> Tensor:
    """Return the same memory as whole numbers of the same width: NaN equals NaN in them."""
    return values.view(_INTEGERS[values.element_size()])


class Plant:
    """Makes one kind of fault, or none.

    Args:
        kind: None leaves everything as it is.
    """

    def __init__(self, kind: PlantKind | None = None) -> None:
        self.kind = kind

    def corrupt(self, now: Tensor, before: Tensor | None = None) -> None:
        """Change what came back, in place.

        Only copies are used, so that it works with a card whose kernels do not.

        Args:
            now: a contiguous tensor that came back from the device, or its memory.
            before: what came back before it, of the same shape; None the first time.
        """
        flat = now.view(-1)
        count = flat.numel()
        if self.kind == "bit":
            _flip(bits_of(flat), count // 3)
        elif self.kind == "stuck" and before is not None:
            flat.copy_(before.view(-1))
        elif self.kind == "swap":
            _swap(flat, max(1, count // 4))
        elif self.kind == "drop":
            lost = slice(count // 2, count // 2 + count // 8 + 1)
            old = torch.zeros_like(flat[lost]) if before is None else before.view(-1)[lost]
            flat[lost].copy_(old)

    def elapsed_s(self, seconds: float, step: int) -> float:
        """Return a step's time; some steps are slow each time.

        Args:
            seconds: the measured time.
            step: the step's number; a repetition has the same number.
        """
        is_slow = self.kind == "slow" and step % _SLOW_EVERY == _SLOW_STEP
        return seconds * _SLOW_FACTOR if is_slow else seconds

    def corrupt_after_rest(self, now: Tensor) -> None:
        """Change what came back from the first work after a rest, in place."""
        if self.kind == "edge":
            _flip(bits_of(now.view(-1)), now.numel() // 3)

    def memory_s(self, seconds: float, *, is_hot: bool) -> float:
        """Return the time of a copy in the device's memory; a hot one may be slow."""
        return seconds * _SLOW_MEMORY if self.kind == "slow_memory" and is_hot else seconds

    def sensed(self, vitals: Telemetry | None, at_s: float) -> Telemetry | None:
        """Return the sensors' reading; a throttled one is hot and slow.

        Args:
            vitals: the reading.
            at_s: the seconds since the start of the round.
        """
        if self.kind == "hot":
            return msgspec.structs.replace(
                vitals or Telemetry(),
                temperature_c=_FAR_TOO_HOT_C,
                clock_event_reasons=ClockReason(0),
            )
        is_late = self.kind == "late_heat" and at_s >= LATE_FROM_S
        if self.kind != "throttle" and not is_late:
            return vitals
        vitals = vitals or Telemetry()
        clock_mhz = None if vitals.sm_clock_mhz is None else vitals.sm_clock_mhz / 2
        return msgspec.structs.replace(
            vitals,
            temperature_c=_HOT_C,
            sm_clock_mhz=_LATE_MHZ if is_late else clock_mhz,
            clock_event_reasons=(vitals.clock_event_reasons or ClockReason(0))
            | ClockReason.HARDWARE_HEAT,
        )


def _flip(bits: Tensor, place: int) -> None:
    one = bits[place : place + 1].cpu()
    bits[place : place + 1].copy_(one ^ (1 << 3))


def _swap(flat: Tensor, count: int) -> None:
    first, last = flat[:count].clone(), flat[-count:].clone()
    flat[:count].copy_(last)
    flat[-count:].copy_(first)
