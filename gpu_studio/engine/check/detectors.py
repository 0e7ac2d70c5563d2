"""Find what is wrong: pure functions over tensors and times.

They compare on the CPU with numpy: where the CPU is checked, PyTorch must not judge itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.check.thresholds import SLOW_STEP_RATIO
from gpu_studio.core.messages.check_messages import MOST_PLACES, WrongBits, WrongWord
from gpu_studio.engine.check.planting import bits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

_FEWEST_STEPS = 6
_SLOW_REPEATS = 7
_WORD_BYTES = 8
_WHOLE_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How many elements differ, of how many, and where that is, in words."""

    count: int
    total: int
    where: str = ""


def mismatched_bits(seen: Tensor, expected: Tensor) -> Mismatch | None:
    """Return where two tensors of one dtype differ in any bit; None if they are the same."""
    here, there = (
        bits_of(one.cpu().contiguous().view(-1)).numpy() for one in (seen, expected)
    )  # fmt: skip
    return mismatch_at(here != there)


def mismatch_at(differs: NDArray[np.bool_], where: str = "") -> Mismatch | None:
    """Return how often a mask is set; None if it is nowhere."""
    count = int(np.count_nonzero(differs))
    return Mismatch(count, differs.size, where) if count else None


def wrong_bits(
    seen: NDArray[np.int64], expected: NDArray[np.int64], first_byte: int, pattern: str = ""
) -> WrongBits | None:
    """Return the wrong bits of 64-bit words; None if there are none.

    Args:
        seen: the words that were read.
        expected: the words that were written.
        first_byte: the address of the first word.
        pattern: what was written, in words.
    """
    difference = seen ^ expected
    places = np.flatnonzero(difference)
    if not len(places):
        return None
    wrong, was = difference[places], expected[places]
    return WrongBits(
        first_byte=first_byte + int(places[0]) * _WORD_BYTES,
        last_byte=first_byte + int(places[-1]) * _WORD_BYTES + _WORD_BYTES - 1,
        words=len(places),
        zero_to_one=_ones(wrong & ~was),
        one_to_zero=_ones(wrong & was),
        places=tuple(
            WrongWord(
                at_byte=first_byte + place * _WORD_BYTES, pattern=pattern,
                expected=_hex(int(expected[place])), seen=_hex(int(seen[place])),
            )
            for place in places[:MOST_PLACES].tolist()
        ),
    )  # fmt: skip


def joined(first: WrongBits | None, second: WrongBits | None) -> WrongBits | None:
    """Return the wrong bits of two parts of the memory together."""
    if first is None or second is None:
        return first or second
    return WrongBits(
        first_byte=min(first.first_byte, second.first_byte),
        last_byte=max(first.last_byte, second.last_byte),
        words=first.words + second.words,
        zero_to_one=first.zero_to_one + second.zero_to_one,
        one_to_zero=first.one_to_zero + second.one_to_zero,
        places=(*first.places, *second.places)[:MOST_PLACES],
    )


def _hex(word: int) -> str:
    return f"{word & _WHOLE_WORD:016x}"


def _ones(words: NDArray[np.int64]) -> int:
    return int(np.unpackbits(words.view(np.uint8)).sum())


class SlowSteps:
    """Finds a step that is slow each time that it runs.

    A busy PC delays any step now and then, sometimes for seconds. So a slow step is repeated in
    turns with a usual one: what delays one of them delays the other as well.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._is_found = False

    def slowness(
        self, seconds: float, again: Callable[[], float], usual: Callable[[], float]
    ) -> float | None:
        """Return how many times as long as a usual step a slow one takes; None for a usual one.

        The second slow step is not told: the repetitions take time.

        Args:
            seconds: the step's time.
            again: runs the same step once more and returns its time.
            usual: runs another step and returns its time.
        """
        is_known = len(self._times_s) >= _FEWEST_STEPS
        if self._is_found or not is_known or not is_slow(seconds, median(self._times_s)):
            self._times_s.append(seconds)
            return None
        slow_s, usual_s = [seconds], [median(self._times_s)]
        for _ in range(_SLOW_REPEATS):
            slow_s.append(again())
            usual_s.append(usual())
            if not is_slow(min(slow_s), median(usual_s)):
                return None
        self._is_found = True
        return min(slow_s) / median(usual_s)


def is_slow(seconds: float, usual_s: float) -> bool:
    """Return whether a step is far slower than usual."""
    return seconds > SLOW_STEP_RATIO * usual_s


def steady(values: Sequence[float], most_change: float) -> bool:
    """Return whether values stay within a range."""
    return bool(values) and max(values) - min(values) <= most_change
