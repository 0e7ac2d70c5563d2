"""IEEE arithmetic on random bit patterns, bit for bit: +, −, ×, ÷, √ and multiply-add.

NVIDIA's CUDA programming guide ("Floating-point standard") promises correctly rounded +, −, ×, ÷,
√ and fused multiply-add in float32 and float64, with subnormal numbers, as nvcc compiles by
default. PyTorch computes float16 and bfloat16 in float32 and rounds once more, which gives the same
as rounding once: float32 has 2p + 2 bits or more (S. A. Figueroa, "When is double rounding
innocuous?", 1995). numpy does the same here, and float64 for float32. Fractions of whole numbers,
which need no float unit, make the answers of multiply-add, and a sample of the others.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.engine.check.detectors import Mismatch, mismatch_at
from gpu_studio.engine.check.formats import (
    FORMATS,
    FloatFormat,
    differing,
    format_of,
    numbers_of,
    rounded,
    to_bits,
    to_tensor,
    wide,
)
from gpu_studio.engine.check.parts import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.formats import Array, Bits
    from gpu_studio.engine.check.stage import StageBench

_COUNT, _FUSED_COUNT = 12288, 768  # Python takes 10 µs for a fraction
_SAMPLE = 48
_LARGE_TIMES = 24  # 300,000 numbers
# √ on the CPU is MKL's, which promises under 0.55 ULP ("high accuracy"), not correct rounding: up
# to 17 % of its float32 roots are the neighbor of the nearest number.
_LARGEST_SHARE_OF_NEIGHBORS = 0.4
_SYMBOLS = {"add": "+", "sub": "−", "mul": "×", "div": "÷", "sqrt": "√", "addcmul": "multiply-add"}
_IN_NUMPY: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
}  # fmt: skip
_IN_FRACTIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "addcmul": lambda a, b, c: a + b * c,
}  # fmt: skip


class IeeeArithmetic(Part):
    """One operation in one float dtype: plain, in place, on strided operands, and many."""

    def __init__(self, operation: str, form: FloatFormat) -> None:
        self.title = f"IEEE {_SYMBOLS[operation]} in {form.name}"
        self.dtype = form.name
        self._operation, self._form = operation, form
        self._operands: list[Tensor] = []
        self._answers: list[Bits] = []
        self._places: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._has_neighbors = False

    def prepare(self, bench: StageBench) -> None:
        """Make new operands and their answers."""
        form, operation = self._form, self._operation
        if operation == "addcmul":
            operands = _near_cancelling(form, bench.numbers)
            self._answers = _fused_or_not(form, *(numbers_of(bits, form) for bits in operands))
        else:
            operands = random_operands(form, bench.numbers, _COUNT)[: 1 + (operation != "sqrt")]
            opmath = "float32" if form.precision < 24 else "float64"
            with np.errstate(all="ignore"):
                numbers = [numbers_of(bits, form).astype(opmath) for bits in operands]
                self._answers = [rounded(_IN_NUMPY[operation](*numbers), form)]
            self._prove_reference(bench, operands)
        self._operands = [to_tensor(bits, form).to(bench.device) for bits in operands]
        self._has_neighbors = operation == "sqrt" and not bench.is_card
        every = np.arange(len(operands[0]))
        across = every[: len(every) // 3 * 3].reshape(-1, 3).T.reshape(-1)
        self._places = np.concatenate([every, every[1:-1], across, np.tile(every, _LARGE_TIMES)])

    def result(self, _bench: StageBench) -> Tensor:
        """Compute in each form on the device."""
        operands = self._operands
        work = getattr(torch, self._operation)
        within = [operands[0].clone()[1:-1], *(one[1:-1] for one in operands[1:])]
        end = len(operands[0]) // 3 * 3
        results = [
            work(*operands),
            getattr(within[0], f"{self._operation}_")(*within[1:]),
            work(*(one[:end].view(-1, 3).t() for one in operands)),
            work(*(one.repeat(_LARGE_TIMES) for one in operands)),
        ]
        return torch.cat([one.cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every bit with the answers; NaN has many patterns, and all are NaN."""
        bits = to_bits(seen)
        is_right = np.zeros(self._places.shape, dtype=np.bool_)
        if bits.shape == self._places.shape:
            for answer in self._answers:
                is_right |= self._is_same(bits, answer[self._places])
            if self._has_neighbors:
                is_right |= self._are_neighbors(bits, ~is_right)
        return mismatch_at(~is_right)

    def _is_same(self, seen: Bits, answer: Bits) -> NDArray[np.bool_]:
        are_nan = is_nan(seen, self._form) & is_nan(answer, self._form)
        result: NDArray[np.bool_] = np.equal(seen, answer) | are_nan
        return result

    def _are_neighbors(self, seen: Bits, differs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the neighbors of the nearest number; none if too many are that."""
        answer = self._answers[0][self._places]
        is_near: NDArray[np.bool_] = np.equal(seen - answer, 1) | np.equal(answer - seen, 1)
        if (differs & is_near).sum() > _LARGEST_SHARE_OF_NEIGHBORS * len(seen):
            is_near[:] = False
        return is_near

    def _prove_reference(self, bench: StageBench, operands: list[Bits]) -> None:
        """Compare a sample of numpy's answers with fractions."""
        if self._operation == "sqrt":
            return
        form = self._form
        at = bench.numbers.integers(0, len(operands[0]), _SAMPLE)
        answers = wide(numbers_of(self._answers[0][at], form))
        factors = np.array([wide(numbers_of(bits[at], form)) for bits in operands])
        normal = 2.0 ** (1 - form.bias)
        is_usual = np.isfinite(factors).all(0) & np.isfinite(answers) & (np.abs(answers) > normal)
        exact = _in_fractions(self._operation, form, *factors[:, is_usual])
        found = mismatch_at(differing(answers[is_usual], exact))
        if found is None:
            return
        sentence = (
            f"{self.title}: the CPU itself is wrong in {found.count} of {found.total} numbers, "
            "compared with whole numbers."
        )
        if bench.is_card:
            bench.report("blind", "doubt", sentence)
        else:
            bench.report(self.kind, "error", sentence, count=found.count)


def _in_fractions(operation: str, form: FloatFormat, *operands: Array) -> Array:
    """Return correctly rounded results that are ordinary numbers, made of whole numbers."""
    work = _IN_FRACTIONS[operation]
    exact = (
        work(*map(Fraction, row)) for row in zip(*(one.tolist() for one in operands), strict=True)
    )
    return np.array([_nearest(one, form.precision) for one in exact])


def _nearest(value: Fraction, bits: int) -> float:
    """Return the nearest number of so many significant bits; of two, the even one."""
    if not value:
        return 0.0
    unit = Fraction(2) ** (math.frexp(float(value))[1] - bits)
    return float(round(value / unit) * unit)


def _fused_or_not(form: FloatFormat, a: Array, b: Array, c: Array) -> list[Bits]:
    """Return a + b·c, rounded once, and with the product rounded first."""
    once = _in_fractions("addcmul", form, a, b, c)
    return [rounded(once, form), rounded(a + b * c, form)]


def _near_cancelling(form: FloatFormat, numbers: np.random.Generator) -> list[Bits]:
    """Return three operands of which a + b·c loses many bits, or none; no result is subnormal."""
    b, c = (
        numbers.uniform(1, 2, _FUSED_COUNT) * 2.0 ** numbers.integers(-9, 10, _FUSED_COUNT)
        for _ in range(2)
    )
    keeps = 2.0 ** -numbers.integers(0, form.precision, _FUSED_COUNT)
    signs = numbers.integers(0, 2, (2, _FUSED_COUNT)) * 2 - 1
    return [rounded(one, form) for one in (b * c * (keeps - 1) * signs[0], b * signs[0], c)]


def random_operands(form: FloatFormat, numbers: np.random.Generator, count: int) -> list[Bits]:
    """Return two operands that reach every kind of rounding.

    They are random bits, numbers near to each other, products and quotients at the edge of the
    subnormal numbers, subnormal numbers, and every pair of special values.
    """
    top, bias, edge = form.top, form.bias, form.precision + 3
    kinds = numbers.integers(0, 6, count)
    near = numbers.integers(-edge, edge + 1, count)
    first, second = (numbers.integers(0, top + 1, count) for _ in range(2))
    first = np.where(kinds == 1, 0, first)
    second = np.select(
        [kinds == 2, kinds == 3, kinds == 4],
        [first + near, bias + 1 - first + near, first + bias - 1 + near], second,
    )  # fmt: skip
    operands = [_with_field(np.clip(one, 0, top), form, numbers) for one in (first, second)]
    special = _specials(form)
    at = np.arange(min(count, len(special) ** 2))
    operands[0][: len(at)] = special[at % len(special)]
    operands[1][: len(at)] = special[at // len(special) % len(special)]
    return operands


def _with_field(field: NDArray[np.int64], form: FloatFormat, numbers: np.random.Generator) -> Bits:
    """Return random numbers with these exponents."""
    low = numbers.integers(0, 1 << (form.precision - 1), len(field), dtype=np.uint64)
    sign = numbers.integers(0, 2, len(field), dtype=np.uint64) << np.uint64(form.width - 1)
    exponent = field.astype(np.uint64) << np.uint64(form.precision - 1)
    bits: Bits = (low | exponent | sign).astype(form.bits_dtype)
    return bits


def _specials(form: FloatFormat) -> Bits:
    hidden = 1 << (form.precision - 1)
    infinity, one = form.top * hidden, form.bias * hidden
    positive = [0, 1, hidden - 1, hidden, hidden + 1, one - 1, one, one + 1, one + hidden,
                infinity - 1, infinity, infinity + hidden // 2]  # fmt: skip
    sign = 1 << (form.width - 1)
    return np.array([*positive, *(bits | sign for bits in positive)], dtype=form.bits_dtype)


def is_nan(bits: Bits, form: FloatFormat) -> NDArray[np.bool_]:
    """Return which numbers are NaN: it has many bit patterns."""
    magnitude = bits & form.bits_dtype.type((1 << (form.width - 1)) - 1)
    result: NDArray[np.bool_] = magnitude > form.bits_dtype.type(form.top << (form.precision - 1))
    return result


def ieee_parts() -> list[Part]:
    """Return every operation in every float dtype; multiply-add where it is of the dtype itself."""
    parts: list[Part] = [IeeeArithmetic(name, form) for form in FORMATS for name in _IN_NUMPY]
    return [
        *parts,
        *(IeeeArithmetic("addcmul", format_of(name)) for name in ("float32", "float64")),
    ]
