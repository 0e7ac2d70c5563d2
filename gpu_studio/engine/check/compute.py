"""Compute: results that are known exactly, or that have to come out the same each time.

Most results are known without PyTorch: from IEEE 754, from numpy, from whole numbers. What has no
known result has to repeat bit for bit. A card that passes products may still fail indexed access,
so that is tested as well.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpu_studio.core.failure import FailureKind, first_line
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.arithmetic import ieee_parts
from gpu_studio.engine.check.detectors import Mismatch, mismatched_bits
from gpu_studio.engine.check.generators import random_parts
from gpu_studio.engine.check.known_answers import KnownAnswer
from gpu_studio.engine.check.known_functions import FUNCTIONS, GRADIENTS
from gpu_studio.engine.check.known_numbers import NUMBERS_KNOWN
from gpu_studio.engine.check.part import Part
from gpu_studio.engine.check.products import FULL, product_parts
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import refuse_bfloat16_products, refuse_dtype
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.check_messages import FindingKind, StageName

    Choice = Callable[[StageBench], list[list[Part]]]

_REPEATS = 3
_WHOLE = ("uint8", "int8", "int16", "int32", "int64")
_INDEXED = 1 << 18
_FLOAT_SIDE = 512
_NAMED_KINDS = 6


class Compute:
    """Known answers, repeated float work, indexed access and convolutions, in turns.

    Args:
        choose: returns the parts to test; see `ComputeWork`.
    """

    name: StageName = "compute"

    def __init__(self, choose: Choice | None = None) -> None:
        self._choose = choose or every_part

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work through all parts again and again; see `stage.Stage`."""
        work = ComputeWork(bench, self._choose(bench))
        while work.groups and not bench.is_over(has_tested_all=work.rounds > 0):
            for title in work.round():
                bench.vitals()
                yield Step(doing=title, tested=work.tested)
        yield Step(doing="", tested=work.tested)
        return work.rounds > 0 and not bench.is_stopped


class ComputeWork:
    """All parts, tested in turns.

    Args:
        bench: gets the findings.
        groups: the parts; a step for each group.

    Attributes:
        groups: those that the device supports, as far as is known.
        results: the number of results so far.
        rounds: how often every part was tested.
    """

    def __init__(self, bench: StageBench, groups: list[list[Part]]) -> None:
        self._bench = bench
        self.groups = groups
        self.results = 0
        self.rounds = 0
        self._before: dict[Part, Tensor] = {}
        self._lacking: list[tuple[Part, str]] = []
        self._has_library = True

    @property
    def tested(self) -> str:
        """What was tested so far, in words; empty if nothing was."""
        if not self.results:
            return ""
        noun = "result" if self.results == 1 else "results"
        parts = [part for group in self.groups for part in group]
        dtypes = len({part.dtype for part in parts} - {""})
        kinds = "kind" if len(parts) == 1 else "kinds"
        types = "dtype" if dtypes == 1 else "dtypes"
        return (
            f"{format_count(len(parts))} {kinds} of work in {dtypes} {types}, "
            f"{format_count(self.results)} {noun}, all compared"
        )

    def round(self) -> Iterator[str]:
        """Test each part once, unless the time is over; yield its title before it."""
        for group in self.groups:
            if self._bench.is_over(has_tested_all=self.rounds > 0):
                return
            for part in list(group):
                yield part.title
                if self._bench.is_stopped:
                    return
                if self._test(part):
                    self.results += 1
                else:
                    group.remove(part)
        self.rounds += 1
        self._report_lacking()

    def _test(self, part: Part) -> bool:
        """Test a part once; return False if the device does not support it."""
        try:
            self._compare(part)
        except Exception as error:
            failure = failure_of(error)
            if failure.fatal or failure.kind in (FailureKind.OUT_OF_MEMORY, FailureKind.NO_KERNEL):
                raise
        else:
            return True
        finally:
            part.release()
        return self._goes_on(part, failure)

    def _goes_on(self, part: Part, failure: Failure) -> bool:
        """Test a part without cuDNN if that is what failed; else note that it is lacking."""
        reason = first_line(failure.cause or failure.message, 200)
        if failure.kind is FailureKind.LIBRARY_UNSUPPORTED and self._has_library:
            self._has_library = False
            self._bench.report(
                "could_not_run", "note",
                f"{part.title}: {reason} The rest of this stage runs without cuDNN.",
            )  # fmt: skip
            return self._test(part)
        is_known = failure.kind in (FailureKind.DTYPE_UNSUPPORTED, FailureKind.LIBRARY_UNSUPPORTED)
        if is_known:
            self._lacking.append((part, reason))
        else:
            self._bench.report("could_not_run", "doubt", f"{part.title} could not run: {reason}")
        return False

    def _compare(self, part: Part) -> None:
        cudnn = torch.backends.cudnn
        with cudnn.flags(enabled=cudnn.enabled and self._has_library), torch.no_grad():
            if part.dtype:
                refuse_dtype(self._bench.device, getattr(torch, part.dtype))
            part.prepare(self._bench)
            seen = part.result(self._bench)
            before = self._before.get(part)
            if self._bench.plant.kind is not None:
                self._before[part] = seen.clone()
            self._bench.plant.corrupt(seen, before)
            found = part.wrong(seen)
            if found is not None:
                self._report(part, found)

    def _report_lacking(self) -> None:
        """Report what this PyTorch lacks on this device, once for each reason."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for part, reason in self._lacking:
            by_reason.setdefault((part.dtype, reason), []).append(part.title)
        self._lacking.clear()
        for (_, reason), titles in by_reason.items():
            named = ", ".join(titles[:_NAMED_KINDS])
            more = f" and {len(titles) - _NAMED_KINDS} more" if len(titles) > _NAMED_KINDS else ""
            self._bench.report("could_not_run", "note", f"{named}{more}: {reason}")

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
            part.kind, part.severity, f"{wrong} The same work, repeated, was wrong {times}.",
            count=found.count, came_back=came_back > 0,
        )  # fmt: skip


def _any_two_agree(results: Sequence[Tensor]) -> bool:
    """Return whether two results are the same: the work itself can be repeated, then."""
    return any(mismatched_bits(first, second) is None for first, second in combinations(results, 2))


def every_part(bench: StageBench) -> list[list[Part]]:
    """Return all parts; those of one operation together."""
    return [*_parts_of_their_own(bench), *_known_parts(bench, 1)]


def part_of_the_answers(bench: StageBench) -> list[list[Part]]:
    """Return all parts, but only a third of the operations with known answers, in turns."""
    return [*_parts_of_their_own(bench), *_known_parts(bench, 3)]


def _parts_of_their_own(bench: StageBench) -> list[list[Part]]:
    parts: list[Part] = [
        *product_parts(bench), *(WholeNumbers(dtype) for dtype in _WHOLE),
        *(RepeatedWork(dtype) for dtype, _ in FULL), Gather(), Scatter(), Convolution(),
        *random_parts(), *ieee_parts(),
    ]  # fmt: skip
    return [[part] for part in parts]


def _known_parts(bench: StageBench, every: int) -> list[list[Part]]:
    """Return the operations with known answers, or each so many-th of them."""
    return [
        [KnownAnswer(known, dtype, turn + number) for number, dtype in enumerate(known.dtypes)]
        for turn, known in enumerate((*FUNCTIONS, *GRADIENTS, *NUMBERS_KNOWN))
        if (turn + bench.seed) % every == 0
    ]


class WholeNumbers(Part):
    """Arithmetic and bits of whole numbers, element by element: it has one exact result.

    Args:
        dtype: the name of the dtype.
    """

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
        self._left, self._right = (
            torch.from_numpy(one).to(bench.device) for one in (left, right)
        )  # fmt: skip

    def result(self, _bench: StageBench) -> Tensor:
        """Compute on the device."""
        result: Tensor = _mixed(self._left, self._right)
        return result.cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with numpy's."""
        return mismatched_bits(seen, self._exact)

    def release(self) -> None:
        """Drop the numbers."""
        self._left = self._right = self._exact = torch.empty(0)


def _mixed(left: Any, right: Any) -> Any:
    """Return a number that depends on every bit of both: product, sum, shift, and, xor.

    It overflows, in the same way everywhere.
    """
    return (left * right - (left & right)) ^ (left >> 3) ^ (right + 1)


class RepeatedWork(Part):
    """Float work whose result the device has to repeat, bit for bit.

    Args:
        dtype: the name of the dtype.
    """

    kind: FindingKind = "unstable_result"

    def __init__(self, dtype: str) -> None:
        self.title = f"Repeated work in {dtype}"
        self.dtype = dtype
        self._source: Tensor | None = None
        self._first: Tensor | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make the input and the first result, once."""
        if self._first is None:
            if self.dtype == "bfloat16":
                refuse_bfloat16_products(bench.device)
            source = bench.numbers.standard_normal((_FLOAT_SIDE, _FLOAT_SIDE))
            self._source = torch.from_numpy(source).to(getattr(torch, self.dtype)).to(bench.device)
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

    def release(self) -> None:
        """Keep the input and the first result: each later one is compared with it."""


class IndexedAccess(Part):
    """Numbers at random places; each number and each place occurs once."""

    kind: FindingKind = "wrong_order"
    dtype = "int32"

    def __init__(self) -> None:
        self._values = self._places = self._exact = torch.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new numbers and places, and the result that numpy gets."""
        values = bench.numbers.permutation(_INDEXED).astype(np.int32)
        places = bench.numbers.permutation(_INDEXED).astype(np.int64)
        self._exact = torch.from_numpy(self.expected(values, places))
        self._values, self._places = (
            torch.from_numpy(one).to(bench.device) for one in (values, places)
        )  # fmt: skip

    def result(self, _bench: StageBench) -> Tensor:
        """Do the access on the device."""
        return self.access(self._values, self._places).cpu()

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with numpy's."""
        return mismatched_bits(seen, self._exact)

    def release(self) -> None:
        """Drop numbers and places."""
        self._values = self._places = self._exact = torch.empty(0)

    @abstractmethod
    def expected(self, values: NDArray[np.int32], places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the result, by numpy."""

    @abstractmethod
    def access(self, values: Tensor, places: Tensor) -> Tensor:
        """Return the result on the device of the operands."""


class Gather(IndexedAccess):
    """Random reads: an element of the result has to come from the right place."""

    title = "Random gather"

    def expected(self, values: NDArray[np.int32], places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers in the order of the places."""
        return values[places]

    def access(self, values: Tensor, places: Tensor) -> Tensor:
        """Read each number at its place."""
        return values.gather(0, places)


class Scatter(IndexedAccess):
    """Random writes: an element has to arrive at the right place, and nowhere else."""

    title = "Random scatter"

    def expected(self, values: NDArray[np.int32], places: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the numbers, each at its place."""
        result = np.empty_like(values)
        result[places] = values
        return result

    def access(self, values: Tensor, places: Tensor) -> Tensor:
        """Write each number to its place."""
        return torch.full_like(values, -1).scatter_(0, places, values)


class Convolution(Part):
    """A convolution of real numbers forward and backward, repeated bit for bit.

    cuDNN's deterministic algorithms repeat their result.
    """

    title = "Convolution of real numbers, forward and backward"
    dtype = "float32"
    kind: FindingKind = "unstable_result"

    def __init__(self) -> None:
        self._inputs: tuple[Tensor, Tensor] | None = None
        self._first: Tensor | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make the pictures, the weights and the first result, once."""
        if self._first is None:
            pictures, weights = (
                torch.from_numpy(bench.numbers.standard_normal(shape, dtype=np.float32))
                for shape in ((4, 8, 48, 48), (16, 8, 3, 3))
            )
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
        with flags, torch.enable_grad():
            output = torch.nn.functional.conv2d(pictures, weights, padding=1)
            gradients = torch.autograd.grad(output.square().sum(), (pictures, weights))
        parts = (output.detach(), *gradients)
        return torch.cat([part.cpu().reshape(-1) for part in parts])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every bit with the first result."""
        assert self._first is not None
        return mismatched_bits(seen, self._first)

    def release(self) -> None:
        """Keep the input and the first result: each later one is compared with it."""
