"""Memory over the batch size: a line through the peaks of a few histories of the same script.

Weights, gradients and the optimizer's state need the same for any batch, activations grow with it
in proportion: so the peak is a line, as long as the same moment of a step needs the most. Where it
is not a line, nothing is predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.units import format_gib

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BATCH = 1 << 20
_LEAST_RESIDUAL_BYTES, _LEAST_RESIDUAL = 64 << 20, 0.02  # of the largest peak
_FARTHEST = 4  # times the largest recorded batch


class BatchPeak(NamedTuple):
    """The most that the allocator reserved at a batch size; ``ooms``: it failed so often."""

    batch: int
    peak_bytes: int
    ooms: int = 0


class BatchLine(NamedTuple):
    """The peak at any batch size: ``base_bytes + batch * slope_bytes``.

    ``residual_bytes`` is the largest distance of a peak from the line; None for two peaks, through
    which there is always a line.
    """

    peaks: tuple[BatchPeak, ...]
    base_bytes: float
    slope_bytes: float
    residual_bytes: float | None

    def needed_bytes(self, batch: int) -> float:
        """Return the memory for a batch, without what other programs and CUDA hold."""
        return self.base_bytes + batch * self.slope_bytes

    def largest_batch(self, free_bytes: float) -> int:
        """Return the largest batch for which so much memory is enough; 0 for none."""
        spare_bytes = free_bytes - self.base_bytes - (self.residual_bytes or 0.0)
        return max(int(spare_bytes / self.slope_bytes), 0)


def batch_line(peaks: Sequence[BatchPeak]) -> BatchLine:
    """Return the line through some peaks.

    Raises:
        StudioError: there are too few, they are no line, or they do not grow with the batch.
    """
    peaks = sorted(peaks)
    batches = [peak.batch for peak in peaks]
    for peak in peaks:
        if not 1 <= peak.batch <= MOST_BATCH:
            raise _refused(f"A batch has 1 to {MOST_BATCH:,} samples.")
        if peak.ooms:
            raise _refused(
                f"The history with batch {peak.batch} was out of memory, so its peak is not what "
                "it needs. Record it on a larger card, or with a smaller batch."
            )
    if len(set(batches)) < 2:
        raise _refused("It takes histories of two different batch sizes, better of three.")
    sizes = np.array([peak.peak_bytes for peak in peaks], np.float64)
    slope_bytes, base_bytes = (float(value) for value in np.polyfit(batches, sizes, 1))
    away = float(np.abs(base_bytes + slope_bytes * np.array(batches) - sizes).max())
    limit = max(_LEAST_RESIDUAL_BYTES, _LEAST_RESIDUAL * float(sizes.max()))
    if away > limit:
        raise _refused(
            f"These peaks are not on a line: one is {format_gib(away)} away from it. Are they of "
            "the same script, with only another batch size?"
        )
    if slope_bytes < 1:
        raise _refused(
            "The memory does not grow with the batch size here, so there is nothing to predict."
        )
    residual_bytes = None if len(peaks) == 2 else away
    return BatchLine(tuple(peaks), base_bytes, slope_bytes, residual_bytes)


def batch_sentence(line: BatchLine, batch: int, other_bytes: int = 0) -> str:
    """Return what a batch would need: "Batch 24 would need 9.1 GiB (from 8, 12, 16; ±0.1)".

    Args:
        line: through the recorded peaks.
        batch: the batch to predict.
        other_bytes: what other programs and CUDA hold on the card.

    Raises:
        StudioError: the batch is too far from the recorded ones.
    """
    largest = line.peaks[-1].batch
    if not 1 <= batch <= _FARTHEST * largest:
        raise _refused(
            f"Batch {batch} is too far from the recorded ones: the line is used up to "
            f"{_FARTHEST * largest}."
        )
    recorded = ", ".join(str(peak.batch) for peak in line.peaks)
    needed = format_gib(line.needed_bytes(batch) + other_bytes, 1)
    around = "error unknown: two histories always make a line"
    if line.residual_bytes is not None:
        around = f"±{max(line.residual_bytes / (1 << 30), 0.1):.1f}"
    return f"Batch {batch} would need {needed} (from {recorded}; {around})"


def largest_sentence(largest: int, card_bytes: int) -> str:
    """Return which batch is the largest that fits a card, by the line."""
    card = format_gib(card_bytes, 1)
    return f"Up to batch {largest} fits {card}." if largest else f"No batch fits {card}."


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)
