"""Compute: results of which every bit is known without PyTorch.

IEEE arithmetic, products, convolutions, whole numbers, indexed access, random numbers, and work
that fills the device: what a chip can get wrong. A card that passes products may still fail indexed
access, and a part of the chip that small work never reaches may be the bad one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpu_studio.engine.check.arithmetic import ieee_parts
from gpu_studio.engine.check.detectors import Mismatch, mismatch_at, mismatched_bits
from gpu_studio.engine.check.parts import Part, PartWork
from gpu_studio.engine.check.products import product_parts
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.core.messages.check_messages import FindingKind, StageName

    Choice = Callable[[StageBench], list[Part]]

_WHOLE = ("uint8", "int8", "int16", "int32", "int64")
_INDEXED = 1 << 18
_FILLING, _FILLING_CPU = (1 << 25) + 4099, (1 << 21) + 4099
"""Elements that give work to all multiprocessors of any card, with a rest at the end."""
_FILLING_SHARE = 16  # of the free memory, for a tensor of them
_MOMENTS = 1 << 16
# Of so many float32 from 0 to 1, which have 24 bits, hardly one in 200 is there twice.
_FEWEST_DISTINCT = 0.99


class PartsStage:
    """A stage that tests kinds of work in turns.

    Args:
        name: of the stage.
        choose: returns the parts to test.
    """

    def __init__(self, name: StageName, choose: Choice) -> None:
        self.name: StageName = name
        self._choose = choose

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work through all parts again and again; see `stage.Stage`.

        The first round is in one thread, because threads of small work wait for each other on a
        busy PC; the next ones reach all cores of a CPU.
        """
        work = PartWork(bench, self._choose(bench))
        threads = torch.get_num_threads()
        try:
            while work.parts and not bench.is_over(has_tested_all=work.rounds > 0):
                torch.set_num_threads(threads if work.rounds else 1)
                for title in work.round():
                    bench.vitals()
                    yield Step(doing=title, tested=work.tested)
        finally:
            torch.set_num_threads(threads)
        yield Step(doing="", tested=work.tested)
        return work.rounds > 0 and not bench.is_stopped


class Compute(PartsStage):
    """What a chip can get wrong."""

    def __init__(self, choose: Choice | None = None) -> None:
        super().__init__("compute", choose or every_part)


def every_part(bench: StageBench) -> list[Part]:
    """Return all parts of a device."""
    return [
        Filling(), *product_parts(bench), *(WholeNumbers(dtype) for dtype in _WHOLE),
        IndexedAccess("gather"), IndexedAccess("scatter"), *ieee_parts(),
        *(RandomNumbers(name) for name in DISTRIBUTIONS),
    ]  # fmt: skip


class Filling(Part):
    """Whole numbers in a tensor so large that every multiprocessor has a share of the work."""

    title = "Whole numbers that fill the device"
    dtype = "int32"

    def __init__(self) -> None:
        self._seed = self._count = 0

    def prepare(self, bench: StageBench) -> None:
        """Take a new seed, and as many elements as the memory allows."""
        self._seed = int(bench.numbers.integers(1, 1 << 31))
        room = free_bytes(bench.device) // (_FILLING_SHARE * torch.int32.itemsize)
        self._count = max(1, min(_FILLING if bench.is_card else _FILLING_CPU, room))

    def result(self, bench: StageBench) -> Tensor:
        """Compute on the device."""
        places = torch.arange(self._count, dtype=torch.int32, device=bench.device)
        result: Tensor = _scrambled(places, self._seed)
        return result.cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with numpy's."""
        places = np.arange(self._count, dtype=np.int32)
        return mismatch_at(seen.numpy() != _scrambled(places, self._seed))


def _scrambled(places: Any, seed: int) -> Any:
    """Return a number for each place that depends on all of its bits; it overflows."""
    return ((places ^ seed) * 0x1E3779B1) ^ (places >> 9)


class WholeNumbers(Part):
    """Arithmetic and bits of whole numbers, element by element: it has one exact result."""

    def __init__(self, dtype: str) -> None:
        self.title = f"Whole numbers in {dtype}"
        self.dtype = dtype
        self._left = self._right = self._exact = torch.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new numbers with all bits, and the result that numpy gets."""
        limits = np.iinfo(self.dtype)
        left, right = (
            bench.numbers.integers(
                limits.min, limits.max, _INDEXED, dtype=self.dtype, endpoint=True
            )
            for _ in range(2)
        )
        self._exact = torch.from_numpy(_mixed(left, right))
        self._left, self._right = (torch.from_numpy(one).to(bench.device) for one in (left, right))

    def result(self, _bench: StageBench) -> Tensor:
        """Compute on the device."""
        result: Tensor = _mixed(self._left, self._right)
        return result.cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with numpy's."""
        return mismatched_bits(seen, self._exact)


def _mixed(left: Any, right: Any) -> Any:
    """Return a number that depends on every bit of both: product, sum, shift, and, xor.

    It overflows, in the same way everywhere.
    """
    return (left * right - (left & right)) ^ (left >> 3) ^ (right + 1)


class IndexedAccess(Part):
    """Numbers at random places; each number and each place occurs once."""

    kind: FindingKind = "wrong_order"
    dtype = "int32"

    def __init__(self, way: str) -> None:
        self.title = f"Random {way}"
        self._is_read = way == "gather"
        self._values = self._places = self._exact = torch.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new numbers and places, and the result that numpy gets."""
        values = bench.numbers.permutation(_INDEXED).astype(np.int32)
        places: NDArray[np.int64] = bench.numbers.permutation(_INDEXED).astype(np.int64)
        self._exact = torch.from_numpy(values[places if self._is_read else np.argsort(places)])
        self._values, self._places = (
            torch.from_numpy(one).to(bench.device) for one in (values, places)
        )  # fmt: skip

    def result(self, _bench: StageBench) -> Tensor:
        """Do the access on the device."""
        if self._is_read:
            return self._values.gather(0, self._places).cpu()
        target = torch.full_like(self._values, -1)
        return target.scatter_(0, self._places, self._values).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with numpy's."""
        return mismatched_bits(seen, self._exact)


DISTRIBUTIONS = ("uniform", "normal", "one of four", "permutation")


class RandomNumbers(Part):
    """Random numbers: their range, mean and spread, each far from what chance allows."""

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
        return mismatch_at(np.full(values.shape, not self._is_plausible(values)))

    def _is_plausible(self, values: NDArray[np.float64]) -> bool:
        """Return whether mean and spread are within eight standard errors."""
        if self._name == "permutation":
            return bool(np.array_equal(np.sort(values), np.arange(_MOMENTS)))
        mean, spread = {
            "normal": (0.0, 1.0), "uniform": (0.5, 12**-0.5), "one of four": (0.25, 0.1875**0.5),
        }[self._name]  # fmt: skip
        slack = 8 / _MOMENTS**0.5
        if self._name == "one of four" and not np.isin(values, (0.0, 1.0)).all():
            return False
        if self._name == "uniform" and not ((values >= 0) & (values < 1)).all():
            return False
        distinct = len(np.unique(values)) / _MOMENTS
        if self._name != "one of four" and distinct < _FEWEST_DISTINCT:
            return False
        with np.errstate(invalid="ignore"):  # numbers that are all the same
            follows = np.corrcoef(values[:-1], values[1:])[0, 1]
        moments = abs(values.mean() - mean), abs(values.std() - spread), abs(follows)
        return bool(max(moments) < slack)
