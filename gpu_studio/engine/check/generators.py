"""The random generators, against the published algorithms that they are.

A card's is Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011),
with the seed as its key. The CPU's is the Mersenne Twister (Matsumoto and Nishimura, 1998), which
numpy has as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.engine.check.detectors import Mismatch, mismatch_at
from gpu_studio.engine.check.part import Part

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.stage import StageBench

_COUNT = 1024
# PyTorch gives each thread a stream of its own, and a launch of this size at most so many threads.
_STREAMS, _BLOCKS = 4096, 4
_MULTIPLIERS, _WEYL = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_LOW_31, _LOW_24 = 0x7FFFFFFF, 0xFFFFFF
_MOST_EQUAL = 2
# Of another algorithm's real numbers, 1 % are near enough to one of the words by chance.
_LARGEST_SHARE_BY_CHANCE = 0.1
_MOMENTS = 1 << 16


def philox(counters: NDArray[np.uint64], key: int) -> NDArray[np.uint32]:
    """Return the four words of each counter.

    Args:
        counters: four words of 32 bits in each row.
        key: 64 bits.
    """
    words = [counters[:, place].astype(np.uint64) for place in range(4)]
    low, high = key & 0xFFFFFFFF, key >> 32
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        left = words[0] * np.uint64(_MULTIPLIERS[0])
        right = words[2] * np.uint64(_MULTIPLIERS[1])
        words = [
            (right >> np.uint64(32)) ^ words[1] ^ np.uint64(low), right & mask,
            (left >> np.uint64(32)) ^ words[3] ^ np.uint64(high), left & mask,
        ]  # fmt: skip
        low, high = (low + _WEYL[0]) & 0xFFFFFFFF, (high + _WEYL[1]) & 0xFFFFFFFF
    return np.stack(words, axis=1).astype(np.uint32)


def card_words(seed: int) -> NDArray[np.uint32]:
    """Return every word that the first numbers of a card's generator may come from."""
    counters = np.zeros((_BLOCKS, _STREAMS, 4), dtype=np.uint64)
    counters[:, :, 0] = np.arange(_BLOCKS)[:, None]
    counters[:, :, 2] = np.arange(_STREAMS)[None, :]
    return philox(counters.reshape(-1, 4), seed).reshape(-1)


class KnownGenerator(Part):
    """Numbers from a seed: each is made of a word that the algorithm has for that seed.

    Args:
        is_whole: whether they are whole numbers of 31 bits; else they are float32 from 0 to 1.
    """

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._noun = "Whole numbers" if is_whole else "Real numbers"
        self.title = f"{self._noun} from a seed"
        self.dtype = "int32" if is_whole else "float32"
        self._seed = 0
        self._is_card = False
        self._exact: NDArray[np.float64] = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Take a new seed and make its words."""
        self._seed = int(bench.numbers.integers(1, 1 << 31))
        self._is_card = bench.is_card
        if self._is_card:
            self.title = f"{self._noun} from a seed (Philox 4x32-10)"
            words = card_words(self._seed)
            # cuRAND's real numbers are the middles of 2^32 steps.
            values = words & _LOW_31 if self._is_whole else (words + 0.5) / 2**32
            self._exact = np.unique(values.astype(np.float64))
            return
        self.title = f"{self._noun} from a seed (Mersenne Twister)"
        drawn = np.random.RandomState(self._seed).randint(0, 1 << 32, _COUNT, dtype=np.uint32)
        values = drawn & _LOW_31 if self._is_whole else (drawn & _LOW_24) / 2**24
        self._exact = values.astype(np.float64)

    def result(self, bench: StageBench) -> Tensor:
        """Make the numbers on the device, with a generator of their own."""
        generator = torch.Generator(device=bench.device).manual_seed(self._seed)
        if not self._is_whole:
            return torch.rand(_COUNT, generator=generator, device=bench.device).cpu()
        numbers = torch.empty(_COUNT, dtype=torch.int32, device=bench.device)
        return numbers.random_(generator=generator).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare with the words: in their order on the CPU, in the order of the threads else."""
        values = seen.numpy().astype(np.float64)
        if not self._is_card:
            return mismatch_at(values != self._exact)
        is_word = self._is_of_a_word(values)
        _, first = np.unique(values, return_index=True)
        # Two of 1,024 words are hardly ever equal; far more of them are if a word sticks.
        is_varied = len(first) >= _COUNT - _MOST_EQUAL
        # Hardly one of them is known: another algorithm, and no word that the card got wrong.
        is_known = is_word.mean() > _LARGEST_SHARE_BY_CHANCE or not is_varied
        self.severity = "error" if is_known else "doubt"
        self.kind = "wrong_result" if is_known else "not_repeatable"
        return mismatch_at(~is_word | (not is_varied))

    def release(self) -> None:
        """Drop the words."""
        self._exact = np.empty(0)

    def _is_of_a_word(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        at = np.searchsorted(self._exact, values).clip(1, len(self._exact) - 1)
        below, above = self._exact[at - 1], self._exact[at]
        away = np.minimum(np.abs(values - below), np.abs(values - above))
        # float32 has 24 of the 32 bits.
        result: NDArray[np.bool_] = away <= (0.0 if self._is_whole else 2.0**-24)
        return result


class RandomMoments(Part):
    """The distributions: their range, mean and spread, each far from what chance allows.

    Args:
        name: of the distribution.
    """

    def __init__(self, name: str) -> None:
        self.title = f"Random numbers: {name}"
        self._name = name
        self._seed = 0

    def prepare(self, bench: StageBench) -> None:
        """Take a new seed."""
        self._seed = int(bench.numbers.integers(1, 1 << 31))

    def result(self, bench: StageBench) -> Tensor:
        """Draw on the device."""
        generator = torch.Generator(device=bench.device).manual_seed(self._seed)
        if self._name == "normal":
            return torch.randn(_MOMENTS, generator=generator, device=bench.device).cpu()
        if self._name == "uniform":
            return torch.rand(_MOMENTS, generator=generator, device=bench.device).cpu()
        if self._name == "permutation":
            return torch.randperm(_MOMENTS, generator=generator, device=bench.device).cpu()
        shares = torch.full((_MOMENTS,), 0.25, device=bench.device)
        return torch.bernoulli(shares, generator=generator).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Return all numbers if the distribution is another one."""
        values = seen.numpy().astype(np.float64)
        bad = np.full(values.shape, not self._is_plausible(values))
        return mismatch_at(bad)

    def release(self) -> None:
        """Do nothing: it has only its seed."""

    def _is_plausible(self, values: NDArray[np.float64]) -> bool:
        """Return whether mean and spread are within eight standard errors."""
        if self._name == "permutation":
            return bool(np.array_equal(np.sort(values), np.arange(_MOMENTS)))
        mean, spread = {
            "normal": (0.0, 1.0), "uniform": (0.5, 12**-0.5), "one of four": (0.25, 0.1875**0.5),
        }[self._name]  # fmt: skip
        slack = 8 / _MOMENTS**0.5
        if self._name == "uniform" and not ((values >= 0) & (values < 1)).all():
            return False
        if self._name == "one of four" and not np.isin(values, (0.0, 1.0)).all():
            return False
        with np.errstate(invalid="ignore"):  # numbers that are all the same
            follows = np.corrcoef(values[:-1], values[1:])[0, 1]
        near = abs(values.mean() - mean) < slack and abs(values.std() - spread) < slack
        return bool(near and abs(follows) < slack and self._has_tails(values))

    def _has_tails(self, values: NDArray[np.float64]) -> bool:
        if self._name != "normal":
            return True
        share = np.mean(np.abs(values) > 2)
        return bool(abs(share - 0.0455) < 0.01)


def random_parts() -> list[Part]:
    """Return every check of random numbers."""
    names = ("uniform", "normal", "one of four", "permutation")
    return [
        KnownGenerator(is_whole=True),
        KnownGenerator(is_whole=False),
        *(RandomMoments(name) for name in names),
    ]
