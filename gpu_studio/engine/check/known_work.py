"""Kinds of work with known results, tested in turns; and numbers without PyTorch.

PyTorch on the CPU is itself a device under test, so it is never the reference: numpy is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from gpu_studio.core.failure import FailureKind, first_line
from gpu_studio.core.units import format_count
from gpu_studio.engine.device import refuse_bfloat16_products, refuse_dtype
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.core.messages.check_messages import FindingKind
    from gpu_studio.engine.check.stage_run import StageRun

    Array = NDArray[Any]
    Mask = NDArray[np.bool_]

_REPEATS = 3
_HOPELESS_SHARE = 0.6  # a card that computes nothing has some numbers right by chance
LAYOUTS = ("contiguous", "transposed", "strided", "sliced")


class Prepared(NamedTuple):
    """Work whose operands are on the device.

    Attributes:
        do: does it and returns the result, contiguous and on the CPU.
        differs: returns which elements of a result are wrong.
    """

    do: Callable[[], Tensor]
    differs: Callable[[Tensor], Mask]


class KnownWork(NamedTuple):
    """One kind of work with a known result.

    Attributes:
        title: in words, of this work alone.
        dtype: the name of the operands' dtype; empty if there is none.
        prepare: makes new operands and the result that they have to give.
        kind: of a finding.
        has_products: of matrices, which some cards lack in bfloat16.
    """

    title: str
    dtype: str
    prepare: Callable[[StageRun], Prepared]
    kind: FindingKind = "wrong_result"
    has_products: bool = False


def compared(
    make: Callable[[StageRun], list[Array]],
    work: Callable[..., Any],
    answer: Callable[..., Array] | None = None,
    slack: Callable[..., Array] | None = None,
    dtype: str = "float64",
) -> Callable[[StageRun], Prepared]:
    """Return what prepares work that is compared with numpy's.

    Args:
        make: makes the operands; ``dtype`` has all of them exactly, if they are no whole numbers.
        work: from tensors to a tensor.
        answer: the same from numpy's arrays; None if it is the same function.
        slack: how far a result may be away, from the operands; None if it has to be equal.
        dtype: of the operands.
    """

    def prepare(run: StageRun) -> Prepared:
        operands = make(run)
        there = [tensor_of(one, dtype).to(run.device) for one in operands]
        exact = (answer or work)(*operands)
        allowed = None if slack is None else slack(*operands)
        return exactly(lambda: work(*there).cpu(), exact, allowed)

    return prepare


def exactly(do: Callable[[], Tensor], exact: Array, slack: Array | None = None) -> Prepared:
    """Return work whose result is compared with numpy's; see `differing`."""
    return Prepared(do, lambda seen: differing(values_of(seen), exact, slack))


def in_turns(run: StageRun, works: list[KnownWork]) -> Generator[str, None, bool]:
    """Test every kind of work again and again; a stage, see `StageRun`.

    The first round is in one thread, because threads of small work wait for each other on a busy
    PC; the next ones reach all cores of a CPU.
    """
    turns = _Turns(run, works)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        while turns.left and not run.is_over(has_tested_all=turns.rounds > 0):
            yield from turns.round()
            torch.set_num_threads(threads)
    finally:
        torch.set_num_threads(threads)
    if turns.rounds and turns.is_hopeless:
        sentence = f"Nothing that the {run.subject} computed in this stage was right."
        run.report("nothing_right", "note", sentence)
    return turns.rounds > 0 and not run.is_stopped


class _Turns:
    """Kinds of work, those ``left`` that the device supports, and what came of them.

    ``is_hopeless``: most of each result so far was wrong.
    """

    def __init__(self, run: StageRun, works: list[KnownWork]) -> None:
        self._run = run
        self.left = list(works)
        self.rounds = self._results = 0
        self.is_hopeless = True
        self._tested: set[KnownWork] = set()
        self._lacking: dict[tuple[str, str], list[str]] = {}
        self._has_library = True

    def round(self) -> Iterator[str]:
        """Test each kind once, unless the time is over; yield its title before it."""
        for work in list(self.left):
            if self._run.is_over(has_tested_all=self.rounds > 0):
                return
            yield work.title
            if self._run.is_stopped:
                return
            if not self._test(work):
                self.left.remove(work)
                continue
            self._results += 1
            self._tested.add(work)
            kinds, dtypes = len(self._tested), {work.dtype for work in self._tested} - {""}
            self._run.tested = (
                f"{format_count(kinds)} kind{'s' * (kinds > 1)} of work in {len(dtypes)} "
                f"dtype{'s' * (len(dtypes) != 1)}, {format_count(self._results)} results compared"
            )
        self.rounds += 1
        self._report_lacking()

    def _test(self, work: KnownWork) -> bool:
        """Test a kind once, without cuDNN if that failed; return False if it is not supported."""
        try:
            self._compare(work)
        except Exception as error:
            failure = failure_of(error)
            if failure.fatal or failure.kind in (FailureKind.OUT_OF_MEMORY, FailureKind.NO_KERNEL):
                raise
        else:
            return True
        reason = first_line(failure.cause or failure.message, 200)
        if failure.kind is FailureKind.LIBRARY_UNSUPPORTED and self._has_library:
            self._has_library = False
            sentence = f"{work.title}: {reason} The rest of this stage runs without cuDNN."
            self._run.report("could_not_run", "note", sentence)
            return self._test(work)
        if failure.kind in (FailureKind.DTYPE_UNSUPPORTED, FailureKind.LIBRARY_UNSUPPORTED):
            self._lacking.setdefault((work.dtype, reason), []).append(work.title)
        else:
            sentence = f"{work.title} could not run: {reason}"
            self._run.report("could_not_run", "doubt", sentence)
        return False

    def _report_lacking(self) -> None:
        """Report what this PyTorch lacks on this device, once for each reason."""
        for (_, reason), titles in self._lacking.items():
            more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
            self._run.report("could_not_run", "note", f"{titles[0]}{more}: {reason}")
        self._lacking.clear()

    def _compare(self, work: KnownWork) -> None:
        run, cudnn = self._run, torch.backends.cudnn
        with cudnn.flags(enabled=cudnn.enabled and self._has_library), torch.no_grad():
            if work.dtype:
                refuse_dtype(run.device, getattr(torch, work.dtype))
            if work.has_products and work.dtype == "bfloat16":
                refuse_bfloat16_products(run.device)
            prepared = work.prepare(run)
            seen = prepared.do()
            run.plant.corrupt(seen, work.title)
            differs = prepared.differs(seen)
            self.is_hopeless &= bool(differs.mean() >= _HOPELESS_SHARE)
            if differs.any():
                self._report(work, prepared, differs)

    def _report(self, work: KnownWork, prepared: Prepared, differs: Mask) -> None:
        """Repeat the same work, and report whether the error comes back."""
        came_back = 0
        for _ in range(_REPEATS):
            again = prepared.do()
            self._run.plant.corrupt(again)
            came_back += bool(prepared.differs(again).any())
        times = "each time" if came_back == _REPEATS else f"{came_back} of {_REPEATS} times"
        count = int(np.count_nonzero(differs))
        self._run.report(
            work.kind, "error",
            f"{work.title}: wrong in {format_count(count)} of {format_count(differs.size)} "
            f"elements. The same work, repeated, was wrong {times}.",
            count=count,
        )  # fmt: skip


def differing(
    seen: Array, exact: Array, slack: Array | None = None, *, has_signs: bool = False
) -> Mask:
    """Return which values are wrong; of another shape, all are.

    Args:
        seen: the device's values.
        exact: the answers. NaN equals NaN.
        slack: how far a value may be away; None if it has to be equal.
        has_signs: whether 0 and −0 differ.
    """
    if seen.shape != exact.shape:
        return np.ones(exact.shape, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        is_equal = (seen == exact) | ((seen != seen) & (exact != exact))
        if slack is not None:
            is_equal |= np.abs(seen - exact) <= slack
    if has_signs:
        is_equal &= (seen != 0) | (np.signbit(seen) == np.signbit(exact))
    result: Mask = ~is_equal
    return result


def significant_bits(dtype: str) -> int:
    """Return the bits of a float dtype's significand, the hidden one included."""
    return 2 - int(np.frexp(torch.finfo(getattr(torch, dtype)).eps)[1])


def ulp_of(values: Array, dtype: str) -> Array:
    """Return the distance between neighboring numbers of a float dtype at these values."""
    least = np.frexp(torch.finfo(getattr(torch, dtype)).tiny)[1]
    exponents = np.maximum(np.frexp(values)[1], least)
    result: Array = np.ldexp(1.0, exponents - significant_bits(dtype))
    return result


def fitted(values: Array, dtype: str) -> Array:
    """Return the nearest values of a dtype, in the numpy dtype that holds them; ties to even."""
    with np.errstate(all="ignore"):
        if dtype != "bfloat16":
            return values.astype(dtype)
        bits = values.astype(np.float32).view(np.uint32)
        near = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return np.where(np.isnan(values), np.float32(np.nan), near.view(np.float32))


def tensor_of(values: Array, dtype: str) -> Tensor:
    """Return values as a CPU tensor, made by numpy; whole numbers keep their dtype."""
    is_whole = values.dtype.kind in "iu"
    here = np.ascontiguousarray(values if is_whole else fitted(values, dtype))
    if is_whole or dtype != "bfloat16":
        return torch.from_numpy(here)
    halves = (here.view(np.uint32) >> 16).astype(np.uint16)
    return torch.from_numpy(halves.view(np.int16)).view(torch.bfloat16)


def values_of(tensor: Tensor) -> Array:
    """Return a tensor's values: float64, complex128, a whole number's dtype, or bool."""
    here = tensor.detach().cpu().contiguous()
    if here.dtype is not torch.bfloat16:
        return wide(here.numpy())
    halves = here.view(torch.int16).numpy().view(np.uint16)
    return wide((halves.astype(np.uint32) << 16).view(np.float32))


def wide(values: Array) -> Array:
    """Return floats as float64, complex numbers as complex128, and others as they are."""
    kind = {"f": np.float64, "c": np.complex128}.get(values.dtype.kind)
    with np.errstate(invalid="ignore"):  # a signaling NaN
        return values if kind is None else values.astype(kind)


def laid_out(values: Tensor, layout: str, device: torch.device) -> Tensor:
    """Return values of two or more dimensions on a device, in memory of one of `LAYOUTS`.

    The memory between and around the values is zero.
    """
    *others, rows, columns = values.shape
    if layout == "contiguous":
        return values.to(device, copy=True)
    if layout == "transposed":
        turned = tuple(reversed(range(values.dim())))
        return values.permute(turned).contiguous().to(device).permute(turned)
    # Copied as a whole: the test of a layout must not depend on a copy in that layout.
    at: Any = (..., slice(0, 2 * columns, 2))
    shape = [rows, 2 * columns]
    if layout == "sliced":
        at = (..., slice(3, 3 + rows), slice(2, 2 + columns))
        shape = [rows + 4, columns + 5]
    memory = torch.zeros(*others, *shape, dtype=values.dtype)
    memory[at] = values
    return memory.to(device)[at]
