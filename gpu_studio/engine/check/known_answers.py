"""Operations with answers that numpy knows: PyTorch and its CPU are never their own reference.

An answer is exact, or it has a tolerance in ULPs of the dtype. The largest errors of CUDA's
functions are in NVIDIA's CUDA programming guide ("Mathematical functions", table of maximum ULP
errors: 1 to 4 for most of them in float32, 9 for a power), those of the CPU's in the papers of
SLEEF (1.0 and 3.5 ULP) and in Intel's notes on MKL's vector functions (under 1 ULP). Tolerances
are at least twice that, and the ULPs are those of a scale where an operation subtracts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpu_studio.engine.check.detectors import Mismatch, mismatch_at, values_of, wide_values
from gpu_studio.engine.check.ieee import FORMATS, format_of, rounded, to_tensor, widened
from gpu_studio.engine.check.layouts import laid_out
from gpu_studio.engine.check.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.stage import StageBench

    Array = NDArray[Any]

FLOATS = ("float32", "float64", "float16", "bfloat16")
WIDE_FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
BOOL = ("bool",)
NUMBERS = (*FLOATS, *INTEGERS)

# (shape, layout): small, odd and unaligned ones reach the ends of a kernel's loops.
_CASES = (
    ((64, 96), "contiguous"), ((1, 1), "contiguous"), ((7, 5), "transposed"),
    ((19, 33), "strided"), ((11, 17), "sliced"),
)  # fmt: skip
_LARGE = (768, 2048)  # 1.5 million elements
_LARGE_EVERY = 8
_EXACT_LARGE = ("float32", "float64", "int32", "int64")
_REAL_OF = {"complex64": "float32", "complex128": "float64"}


class Operands:
    """Makes operands of one shape and dtype, each representable in the dtype.

    Args:
        numbers: where they come from.
        shape: of each operand.
        dtype: the name of the dtype.
    """

    def __init__(self, numbers: np.random.Generator, shape: tuple[int, int], dtype: str) -> None:
        self.numbers, self.shape, self.dtype = numbers, shape, dtype

    def real(self, low: float, high: float) -> Array:
        """Return real numbers in a range; a quarter of them are small."""
        values = self.numbers.uniform(low, high, self.shape)
        shrink = np.ldexp(1.0, -self.numbers.integers(0, 8, self.shape))
        is_small = self.numbers.integers(0, 4, self.shape) == 0
        in_range = np.clip(values * np.where(is_small, shrink, 1.0), low, high)
        return fitted(in_range, self.dtype)

    def whole(self, largest: int | None = None) -> Array:
        """Return whole numbers whose sums over a row stay exact in the dtype."""
        limit = largest or {"bfloat16": 1, "float16": 3}.get(self.dtype, 8)
        low = 0 if self.dtype in ("bool", "uint8") else -limit
        high = 1 if self.dtype == "bool" else limit
        values = self.numbers.integers(low, high + 1, self.shape)
        if self.dtype in COMPLEX:
            other = self.numbers.integers(low, high + 1, self.shape)
            return fitted(values + 1j * other, self.dtype)
        return fitted(values, self.dtype)

    def above_zero(self, largest: int = 8) -> Array:
        """Return whole numbers from 1 on."""
        return fitted(self.numbers.integers(1, largest + 1, self.shape), self.dtype)

    def any(self) -> Array:
        """Return any numbers of an integer dtype or of bool; of a float, random ordinary ones."""
        if self.dtype == "bool":
            return self.numbers.integers(0, 2, self.shape).astype(np.bool_)
        if self.dtype in FLOATS:
            return self.real(-1000.0, 1000.0)
        limits = np.iinfo(self.dtype)
        return self.numbers.integers(
            limits.min, limits.max, self.shape, dtype=self.dtype, endpoint=True
        )

    def places(self, end: int) -> Array:
        """Return indices under an end, int64."""
        return self.numbers.integers(0, end, self.shape)

    def mask(self) -> Array:
        """Return truth values."""
        return self.numbers.integers(0, 2, self.shape).astype(np.bool_)


def fitted(values: Array, dtype: str) -> Array:
    """Return the nearest values that a dtype has; bfloat16 in float32."""
    if dtype == "bfloat16":
        form = format_of(dtype)
        return widened(rounded(values.astype(np.float64), form), form).astype(np.float32)
    return values.astype(dtype)


def tensor_of(values: Array, dtype: str) -> Tensor:
    """Return values as a CPU tensor, made without an operation of PyTorch."""
    if dtype == "bfloat16" and values.dtype == np.float32:
        form = format_of(dtype)
        return to_tensor(rounded(values.astype(np.float64), form), form)
    return torch.from_numpy(np.ascontiguousarray(values))


@dataclass(frozen=True, slots=True)
class Known:
    """An operation and its answer.

    Attributes:
        name: PyTorch's name.
        work: from tensors to a tensor.
        answer: the same from numpy's arrays; floats are float64 in it, complex numbers complex128.
        operands: makes the operands.
        dtypes: those of the operands.
        ulps: the tolerance; None is exact.
        scale: the tolerance is in ULPs of this at least: a number, or made of the operands.
        is_elementwise: whether each element has its own answer.
    """

    name: str
    work: Callable[..., Tensor]
    answer: Callable[..., Array]
    operands: Callable[[Operands], Sequence[Array]]
    dtypes: tuple[str, ...] = FLOATS
    ulps: float | None = None
    scale: float | Callable[..., Array] = 0.0
    is_elementwise: bool = True


class KnownAnswer(Part):
    """One operation in one dtype.

    Args:
        known: the operation.
        dtype: the dtype.
        turn: its place in the list: large tensors are in turns.
    """

    def __init__(self, known: Known, dtype: str, turn: int) -> None:
        self.title = f"{known.name} in {dtype}"
        self.dtype = dtype
        self._known, self._turn = known, turn
        self._rounds = 0
        self._operands: list[list[Tensor]] = []
        self._exact: Array = np.empty(0)
        self._slack: Array | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make new operands in each shape and layout, and their answers."""
        known = self._known
        answers: list[Array] = []
        slacks: list[Array] = []
        self._operands.clear()
        for shape, layout in _CASES:
            operands = list(known.operands(Operands(bench.numbers, shape, self.dtype)))
            self._operands.append([self._placed(one, layout, bench) for one in operands])
            answer, slack = self._answer(operands)
            answers.append(answer)
            slacks.append(slack)
        if self._is_large(bench):
            self._add_large(bench, answers, slacks)
        self._exact = np.concatenate(answers)
        self._slack = None if known.ulps is None else np.concatenate(slacks)

    def result(self, _bench: StageBench) -> Tensor:
        """Do the work on the device, on all operands."""
        results = [self._known.work(*operands) for operands in self._operands]
        return torch.cat([one.detach().cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with its answer."""
        values = values_of(seen)
        if values.shape != self._exact.shape:
            return Mismatch(self._exact.size, self._exact.size, 0, self._exact.size - 1)
        return mismatch_at(differing(values, self._exact, self._slack))

    def release(self) -> None:
        """Drop operands and answers."""
        self._operands.clear()
        self._exact, self._slack = np.empty(0), None

    def _placed(self, values: Array, layout: str, bench: StageBench) -> Tensor:
        dtype = self.dtype if values.dtype.kind in "fc" else str(values.dtype)
        return laid_out(tensor_of(values, dtype), layout, bench.device)

    def _answer(self, operands: list[Array]) -> tuple[Array, Array]:
        """Return the answer and how far a result may be from it."""
        known, wide = self._known, [wide_values(one) for one in operands]
        with np.errstate(all="ignore"):
            answer = np.asarray(known.answer(*wide)).reshape(-1)
            if known.ulps is None:
                return wide_values(answer), np.empty(0)
            scale = known.scale(*wide) if callable(known.scale) else np.asarray(known.scale)
            size = np.broadcast_to(np.abs(scale), (answer.size,)) if scale.ndim == 0 else scale
            reach = np.maximum(np.abs(answer), np.abs(size).reshape(-1))
        return wide_values(answer), known.ulps * ulp_of(reach, self.dtype)

    def _is_large(self, bench: StageBench) -> bool:
        is_fit = self._known.is_elementwise or self.dtype in _EXACT_LARGE
        self._rounds += 1
        return is_fit and (self._turn + bench.seed + self._rounds) % _LARGE_EVERY == 0

    def _add_large(self, bench: StageBench, answers: list[Array], slacks: list[Array]) -> None:
        """Add a large case: the first one again and again, where each element stands alone."""
        known = self._known
        if not known.is_elementwise:
            operands = list(known.operands(Operands(bench.numbers, _LARGE, self.dtype)))
            self._operands.append([self._placed(one, "contiguous", bench) for one in operands])
            answer, slack = self._answer(operands)
        else:
            times = _LARGE[0] * _LARGE[1] // self._operands[0][0].numel()
            self._operands.append([one.repeat(times, 1) for one in self._operands[0]])
            answer, slack = np.tile(answers[0], times), np.tile(slacks[0], times)
        answers.append(answer)
        slacks.append(slack)


def ulp_of(values: Array, dtype: str) -> Array:
    """Return the distance between neighboring numbers of a dtype at these values."""
    name = _REAL_OF.get(dtype, dtype)
    form = next((one for one in FORMATS if one.name == name), None)
    if form is None:
        return np.ones_like(values)
    _, exponents = np.frexp(values)
    lowest = 2 - form.bias
    result: Array = np.ldexp(1.0, np.maximum(exponents, lowest) - form.precision)
    return result


def differing(seen: Array, exact: Array, slack: Array | None) -> NDArray[np.bool_]:
    """Return which values are wrong.

    Args:
        seen: the device's values.
        exact: the answers. 0 and −0 are equal; NaN equals NaN.
        slack: how far a value may be away; None if it has to be equal.
    """
    with np.errstate(invalid="ignore"):
        is_equal = (seen == exact) | ((seen != seen) & (exact != exact))
        if slack is not None:
            is_equal |= np.abs(seen - exact) <= slack
    result: NDArray[np.bool_] = ~is_equal
    return result
