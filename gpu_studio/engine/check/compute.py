"""Compute: results that are known exactly, or that have to come out the same each time.

Matrices of small whole numbers have an exact product in every dtype and in any order of the sum, so
that CPU and card have to agree in every bit: no tolerance, no false alarm. A card that passes
products may still fail indexed access, so that is tested as well.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import combinations
from typing import TYPE_CHECKING, Protocol

import torch

from gpu_studio.core.failure import FailureKind, first_line
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.detectors import Mismatch, mismatched_bits, mismatched_values
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import refuse_bfloat16_products
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import FindingKind, StageName

_REPEATS = 3
_ROWS = 512
# (dtype, inner size K, largest absolute value a): every partial sum is at most K·a². float32 and
# TF32: below 2^24, and a has at most 10 bits. float16: below 2048. bfloat16: below 256. float64:
# below 2^53.
_EXACT = (
    ("float32", 256, 127), ("float16", 128, 3), ("bfloat16", 128, 1), ("float64", 256, 1 << 20),
)  # fmt: skip
# (dtype, bits of a factor): no product overflows.
_WHOLE = (("int32", 15), ("int64", 31))
_INDEXED = 1 << 18
_FLOAT_SIDE = 512


class Compute:
    """Exact products, repeated float work, indexed access and convolutions, in turns."""

    name: StageName = "compute"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work through all parts again and again; see `stage.Stage`."""
        work = ComputeWork(bench)
        while work.parts and not bench.is_over(has_tested_all=work.rounds > 0):
            for title in work.round():
                bench.vitals()
                yield Step(doing=title, tested=work.tested)
        return work.rounds > 0 and not bench.is_stopped


class Part(Protocol):
    """One kind of work with a known result."""

    title: str
    kind: FindingKind

    def prepare(self, bench: StageBench) -> None:
        """Make new inputs and the result that they have to give."""

    def result(self, bench: StageBench) -> Tensor:
        """Do the work on the device and return the result, on the CPU."""

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Return the elements that are wrong."""


class ComputeWork:
    """All parts, tested in turns.

    Args:
        bench: gets the findings.

    Attributes:
        parts: those that the device supports, as far as is known.
        results: the number of results so far.
        rounds: how often every part was tested.
    """

    def __init__(self, bench: StageBench) -> None:
        self._bench = bench
        self.parts: list[Part] = [
            *(ExactProduct(*row) for row in _EXACT), *(WholeNumbers(*row) for row in _WHOLE),
            *(RepeatedWork(dtype) for dtype, _, _ in _EXACT), Gather(), Scatter(), Convolution(),
        ]  # fmt: skip
        self.results = 0
        self.rounds = 0
        self._before: dict[Part, Tensor] = {}

    @property
    def tested(self) -> str:
        """What was tested so far, in words."""
        noun = "result" if self.results == 1 else "results"
        return f"{format_count(self.results)} {noun} of {len(self.parts)} kinds, every element"

    def round(self) -> Iterator[str]:
        """Test each part once, unless the time is over; yield its title afterwards."""
        for part in list(self.parts):
            if self._bench.is_over(has_tested_all=self.rounds > 0):
                return
            if self._test(part):
                self.results += 1
                yield part.title
            else:
                self.parts.remove(part)
        self.rounds += 1

    def _test(self, part: Part) -> bool:
        """Test a part once; return False if the device does not support it."""
        try:
            part.prepare(self._bench)
            seen = part.result(self._bench)
        except Exception as error:
            failure = failure_of(error)
            if failure.kind is not FailureKind.DTYPE_UNSUPPORTED:
                raise
            reason = first_line(failure.message, 200)
            self._bench.report("could_not_run", "note", f"{part.title}: {reason}")
            return False
        before = self._before.get(part)
        self._before[part] = seen.clone()
        self._bench.plant.corrupt(seen, before)
        found = part.wrong(seen)
        if found is not None:
            self._report(part, found)
        return True

    def _report(self, part: Part, found: Mismatch) -> None:
        """Repeat the same work, and report whether the error comes back."""
        again = [part.result(self._bench) for _ in range(_REPEATS)]
        for seen in again:
            self._bench.plant.corrupt(seen)
        came_back = sum(part.wrong(seen) is not None for seen in again)
        wrong = (
            f"{part.title}: wrong in {format_count(found.count)} of {format_count(found.total)} "
            f"elements."
        )
        if part.kind == "unstable_result" and not _any_two_agree(again):
            self._bench.report(
                "not_repeatable", "doubt",
                f"{part.title}: every repetition gave another result, so none can be judged.",
            )  # fmt: skip
            return
        times = "each time" if came_back == _REPEATS else f"{came_back} of {_REPEATS} times"
        self._bench.report(
            part.kind, "error", f"{wrong} The same work, repeated, was wrong {times}.",
            count=found.count, came_back=came_back > 0,
        )  # fmt: skip


def _any_two_agree(results: Sequence[Tensor]) -> bool:
    """Return whether two results are the same: the work itself can be repeated, then."""
    return any(mismatched_bits(first, second) is None for first, second in combinations(results, 2))


class ExactProduct:
    """A product of whole numbers.

    Args:
        dtype: the name of the dtype.
        inner: the inner size.
        largest: the largest absolute value of an element.
    """

    kind: FindingKind = "wrong_result"

    def __init__(self, dtype: str, inner: int, largest: int) -> None:
        self.title = f"Exact products in {dtype}"
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._inner, self._largest = inner, largest
        self._left = self._right = self._exact = torch.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new matrices; float64 holds their product exactly."""
        if self._dtype is torch.bfloat16:
            refuse_bfloat16_products(bench.device)
        left = self._numbers(bench, _ROWS, self._inner)
        right = self._numbers(bench, self._inner, _ROWS)
        self._exact = left @ right
        self._left, self._right = (one.to(self._dtype).to(bench.device) for one in (left, right))

    def result(self, bench: StageBench) -> Tensor:
        """Multiply on the device."""
        return (self._left @ self._right).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the exact product."""
        return mismatched_values(seen, self._exact)

    def _numbers(self, bench: StageBench, rows: int, columns: int) -> Tensor:
        shape = (rows, columns)
        size = torch.randint(1, self._largest + 1, shape, generator=bench.generator)
        sign = torch.randint(0, 2, shape, generator=bench.generator) * 2 - 1
        return (size * sign).double()


class WholeNumbers:
    """Arithmetic and bits of whole numbers, element by element: it has one exact result.

    Args:
        dtype: the name of the dtype.
        bits: of the factors.
    """

    kind: FindingKind = "wrong_result"

    def __init__(self, dtype: str, bits: int) -> None:
        self.title = f"Whole numbers in {dtype}"
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._limit = 1 << bits
        self._left = self._right = self._exact = torch.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new numbers, and the result that the CPU gets."""
        left, right = (self._numbers(bench) for _ in range(2))
        self._exact = _mixed(left, right)
        self._left, self._right = left.to(bench.device), right.to(bench.device)

    def result(self, _bench: StageBench) -> Tensor:
        """Compute on the device."""
        return _mixed(self._left, self._right).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the CPU's."""
        return mismatched_bits(seen, self._exact)

    def _numbers(self, bench: StageBench) -> Tensor:
        return torch.randint(
            -self._limit, self._limit, (_INDEXED,), dtype=self._dtype, generator=bench.generator
        )


def _mixed(left: Tensor, right: Tensor) -> Tensor:
    """Return a number that depends on every bit of both: product, sum, shift, and, xor."""
    return (left * right - (left & right)) ^ (left >> 3) ^ (right + 1)


class RepeatedWork:
    """Float work whose result the device has to repeat, bit for bit.

    Args:
        dtype: the name of the dtype.
    """

    kind: FindingKind = "unstable_result"

    def __init__(self, dtype: str) -> None:
        self.title = f"Repeated work in {dtype}"
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._source: Tensor | None = None
        self._first: Tensor | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make the input and the first result, once."""
        if self._source is None:
            if self._dtype is torch.bfloat16:
                refuse_bfloat16_products(bench.device)
            source = torch.randn(_FLOAT_SIDE, _FLOAT_SIDE, generator=bench.generator)
            self._source = source.to(self._dtype).to(bench.device)
            self._first = self.result(bench)

    def result(self, bench: StageBench) -> Tensor:
        """Multiply, then work on each element."""
        assert self._source is not None
        product = self._source @ self._source
        return (product.sigmoid() * self._source + product.cos()).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every bit with the first result."""
        assert self._first is not None
        return mismatched_bits(seen, self._first)


class IndexedAccess(ABC):
    """Numbers at random places; each number and each place occurs once."""

    title: str
    kind: FindingKind = "wrong_order"

    def __init__(self) -> None:
        self._values = self._places = self._exact = torch.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new numbers and places, and the result that the CPU gets."""
        values = torch.randperm(_INDEXED, generator=bench.generator, dtype=torch.int32)
        places = torch.randperm(_INDEXED, generator=bench.generator)
        self._exact = self.expected(values, places)
        self._values, self._places = values.to(bench.device), places.to(bench.device)

    def result(self, _bench: StageBench) -> Tensor:
        """Do the access on the device."""
        return self.access(self._values, self._places).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the CPU's."""
        return mismatched_bits(seen, self._exact)

    @abstractmethod
    def expected(self, values: Tensor, places: Tensor) -> Tensor:
        """Return the result, by another operation than `access`."""

    @abstractmethod
    def access(self, values: Tensor, places: Tensor) -> Tensor:
        """Return the result on the device of the operands."""


class Gather(IndexedAccess):
    """Random reads: an element of the result has to come from the right place."""

    title = "Random gather"

    def expected(self, values: Tensor, places: Tensor) -> Tensor:
        """Return the numbers in the order of the places."""
        return values[places]

    def access(self, values: Tensor, places: Tensor) -> Tensor:
        """Read each number at its place."""
        return values.gather(0, places)


class Scatter(IndexedAccess):
    """Random writes: an element has to arrive at the right place, and nowhere else."""

    title = "Random scatter"

    def expected(self, values: Tensor, places: Tensor) -> Tensor:
        """Return the numbers, each at its place."""
        return torch.empty_like(values).index_copy_(0, places, values)

    def access(self, values: Tensor, places: Tensor) -> Tensor:
        """Write each number to its place."""
        return torch.full_like(values, -1).scatter_(0, places, values)


class Convolution:
    """A convolution forward and backward, repeated bit for bit.

    Its algorithm may round in the middle, so there is no exact result. cuDNN's deterministic
    algorithms repeat theirs.
    """

    title = "Convolution, forward and backward"
    kind: FindingKind = "unstable_result"

    def __init__(self) -> None:
        self._inputs: tuple[Tensor, Tensor] | None = None
        self._first: Tensor | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make the pictures, the weights and the first result, once."""
        if self._inputs is None:
            pictures = torch.randn(4, 8, 48, 48, generator=bench.generator)
            weights = torch.randn(16, 8, 3, 3, generator=bench.generator)
            self._inputs = pictures.to(bench.device), weights.to(bench.device)
            self._first = self.result(bench)

    def result(self, bench: StageBench) -> Tensor:
        """Convolve, and return the output with both gradients, one after the other."""
        assert self._inputs is not None
        pictures, weights = (one.detach().requires_grad_() for one in self._inputs)
        flags = torch.backends.cudnn.flags(
            enabled=torch.backends.cudnn.enabled, benchmark=False, deterministic=True,
            allow_tf32=False,
        )  # fmt: skip
        with flags:
            output = torch.nn.functional.conv2d(pictures, weights, padding=1)
            gradients = torch.autograd.grad(output.square().sum(), (pictures, weights))
        parts = (output.detach(), *gradients)
        return torch.cat([part.cpu().reshape(-1) for part in parts])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every bit with the first result."""
        assert self._first is not None
        return mismatched_bits(seen, self._first)
