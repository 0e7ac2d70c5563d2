"""IEEE 754 arithmetic without PyTorch: what a float operation has to return, bit for bit.

PyTorch on the CPU is itself a device under test, so it is never the reference. Most results are
made by numpy in float64 and rounded once more: with at least 2p + 2 bits in between, rounding twice
gives the same as rounding once (S. A. Figueroa, "When is double rounding innocuous?", 1995), and
float64 has 53 bits for the 24 of float32. A sample of each result is made again from whole numbers
of Python, which use no floating-point unit at all.

NVIDIA's CUDA programming guide ("Floating-point standard") promises correctly rounded +, −, ×, ÷,
√ and fused multiply-add in float32 and float64, with subnormal numbers, as nvcc compiles by
default. PyTorch computes float16 and bfloat16 in float32 and rounds once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Bits = NDArray[np.unsignedinteger]
    Wide = NDArray[np.float64]

OPERATIONS = ("add", "sub", "mul", "div", "sqrt", "fma")


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format.

    Attributes:
        name: PyTorch's name of the dtype.
        precision: the significant bits, with the hidden one.
        exponent_bits: the width of the exponent.
    """

    name: str
    precision: int
    exponent_bits: int

    @property
    def width(self) -> int:
        """The bits of a number."""
        return self.precision + self.exponent_bits

    @property
    def bias(self) -> int:
        """The exponent field of 1.0."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def top(self) -> int:
        """The exponent field of infinities and NaN."""
        return (1 << self.exponent_bits) - 1

    @property
    def bits_dtype(self) -> np.dtype[np.unsignedinteger]:
        """The unsigned numpy dtype of the same width."""
        return np.dtype(f"uint{self.width}")

    @property
    def torch_dtype(self) -> torch.dtype:
        """PyTorch's dtype."""
        dtype: torch.dtype = getattr(torch, self.name)
        return dtype


FORMATS: tuple[FloatFormat, ...] = (
    FloatFormat("float32", 24, 8), FloatFormat("float64", 53, 11), FloatFormat("float16", 11, 5),
    FloatFormat("bfloat16", 8, 8),
)  # fmt: skip


def format_of(name: str) -> FloatFormat:
    """Return the format of a float dtype."""
    return next(one for one in FORMATS if one.name == name)


def to_tensor(bits: Bits, form: FloatFormat) -> Tensor:
    """Return a CPU tensor with these bits."""
    signed = bits.view(f"int{form.width}").copy()
    return torch.from_numpy(signed).view(form.torch_dtype)


def to_bits(seen: Tensor) -> Bits:
    """Return the bits of a contiguous float tensor on the CPU."""
    width = 8 * seen.element_size()
    return seen.view(getattr(torch, f"int{width}")).numpy().view(f"uint{width}")


def widened(bits: Bits, form: FloatFormat) -> Wide:
    """Return the same numbers in float64; no number changes."""
    with np.errstate(invalid="ignore"):  # a signaling NaN
        if form.name == "bfloat16":
            return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return bits.view(form.name).astype(np.float64)


def rounded(wide: Wide, form: FloatFormat) -> Bits:
    """Return numbers rounded once, to nearest, ties to even."""
    with np.errstate(all="ignore"):
        if form.name != "bfloat16":
            return wide.astype(form.name).view(form.bits_dtype)
        near = wide.astype(np.float32)
        # To odd first: the bits that float32 drops must still decide a tie.
        is_even = (near.view(np.uint32) & 1) == 0
        is_between = is_even & np.isfinite(near) & (near.astype(np.float64) != wide)
        towards = np.where(wide > near, np.float32(np.inf), np.float32(-np.inf))
        odd = np.where(is_between, np.nextafter(near, towards), near).view(np.uint32)
        result = (odd + 0x7FFF + ((odd >> 16) & 1)) >> 16
        return np.where(np.isnan(wide), 0x7FC0, result).astype(np.uint16)


def answers(operation: str, form: FloatFormat, operands: list[Bits]) -> list[Bits]:
    """Return the results that a device may give: one, or for "fma" also the one rounded twice.

    Args:
        operation: one of `OPERATIONS`; "fma" is a + b·c.
        form: of the operands and of the result.
        operands: as many as the operation has.
    """
    wide = [widened(bits, form) for bits in operands]
    with np.errstate(all="ignore"):
        if operation == "fma":
            return _fused_or_not(form, operands, *wide)
        return [rounded(_computed(operation, *wide), form)]


def _computed(operation: str, a: Wide, b: Wide | None = None) -> Wide:
    if b is None:
        return np.sqrt(a)
    work = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[operation]
    result: Wide = work(a, b)
    return result


def _fused_or_not(form: FloatFormat, operands: list[Bits], a: Wide, b: Wide, c: Wide) -> list[Bits]:
    """Return a + b·c, rounded once, and with the product rounded first."""
    if form.name == "float64":
        once = np.array(
            [exact("fma", form, *(int(bits[at]) for bits in operands)) for at in range(len(a))],
            dtype=np.uint64,
        )
        return [once, rounded(a + b * c, form)]
    once_wide = _to_odd(a, b * c)
    single = format_of("float32")
    # PyTorch's kernels compute in float32, also for the smaller formats.
    fused = widened(rounded(once_wide, single), single)
    product = widened(rounded(b * c, single), single)
    apart = widened(rounded(a + product, single), single)
    return [rounded(once_wide, form), rounded(fused, form), rounded(apart, form)]


def _to_odd(a: Wide, b: Wide) -> Wide:
    """Return a + b in float64, rounded to odd: rounding it once more loses nothing."""
    total = a + b
    part = total - a
    rest = (a - (total - part)) + (b - part)
    is_even = (total.view(np.uint64) & 1) == 0
    is_between = is_even & np.isfinite(total) & (rest != 0) & np.isfinite(rest)
    return np.where(is_between, np.nextafter(total, np.where(rest > 0, np.inf, -np.inf)), total)


# --- the same with whole numbers of Python ------------------------------------------------------


def exact(operation: str, form: FloatFormat, *operands: int) -> int:
    """Return the correctly rounded result's bits, made of whole numbers only; any NaN is one NaN.

    Args:
        operation: one of `OPERATIONS`.
        form: of the operands and of the result.
        operands: the bits of each.
    """
    nan = (form.top << (form.precision - 1)) | (1 << (form.precision - 2))
    parts = [_Parts.of(bits, form) for bits in operands]
    if any(one.is_nan for one in parts):
        return nan
    if operation == "fma":
        first, left, right = parts
        return _sum(first, _product(left, right), form, nan)
    if operation == "sqrt":
        return _root(parts[0], form, nan)
    first, second = parts
    if operation == "mul":
        product = _product(first, second)
        return nan if product.is_nan else _encoded(product, form)
    if operation == "div":
        return _quotient(first, second, form, nan)
    if operation == "sub":
        second = _Parts(
            1 - second.sign, second.number, second.power, is_infinite=second.is_infinite
        )
    return _sum(first, second, form, nan)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A number: ±number · 2^power."""

    sign: int
    number: int
    power: int
    is_infinite: bool = False
    is_nan: bool = False

    @classmethod
    def of(cls, bits: int, form: FloatFormat) -> _Parts:
        sign, low = bits >> (form.width - 1), bits & ((1 << (form.precision - 1)) - 1)
        field = (bits >> (form.precision - 1)) & form.top
        if field == form.top:
            return cls(sign, 0, 0, is_infinite=not low, is_nan=bool(low))
        hidden = (1 << (form.precision - 1)) if field else 0
        return cls(sign, low | hidden, max(field, 1) - form.bias - form.precision + 1)


def _product(a: _Parts, b: _Parts) -> _Parts:
    sign = a.sign ^ b.sign
    if a.is_infinite or b.is_infinite:
        is_nan = (not a.is_infinite and not a.number) or (not b.is_infinite and not b.number)
        return _Parts(sign, 0, 0, is_infinite=not is_nan, is_nan=is_nan)
    return _Parts(sign, a.number * b.number, a.power + b.power)


def _sum(a: _Parts, b: _Parts, form: FloatFormat, nan: int) -> int:
    if b.is_nan or (a.is_infinite and b.is_infinite and a.sign != b.sign):
        return nan
    if a.is_infinite or b.is_infinite:
        return _encoded(a if a.is_infinite else b, form)
    power = min(a.power, b.power)
    first = (a.number << (a.power - power)) * (1 - 2 * a.sign)
    total = first + (b.number << (b.power - power)) * (1 - 2 * b.sign)
    sign = int(total < 0) if total else a.sign & b.sign
    return _encoded(_Parts(sign, abs(total), power), form)


def _quotient(a: _Parts, b: _Parts, form: FloatFormat, nan: int) -> int:
    sign = a.sign ^ b.sign
    if a.is_infinite or b.is_infinite:
        if a.is_infinite and b.is_infinite:
            return nan
        return _encoded(_Parts(sign, 0, 0, is_infinite=a.is_infinite), form)
    if not b.number:
        return nan if not a.number else _encoded(_Parts(sign, 0, 0, is_infinite=True), form)
    shift = 2 * form.precision + 4
    number, rest = divmod(a.number << shift, b.number)
    # A last bit stands for all that is left.
    return _encoded(_Parts(sign, 2 * number + bool(rest), a.power - b.power - shift - 1), form)


def _root(a: _Parts, form: FloatFormat, nan: int) -> int:
    if a.is_infinite or not a.number:
        return nan if a.is_infinite and a.sign else _encoded(a, form)
    if a.sign:
        return nan
    shift = 2 * form.precision + 4 + (a.power & 1)
    number = a.number << shift
    root = isqrt(number)
    return _encoded(_Parts(0, 2 * root + (root * root != number), (a.power - shift) // 2 - 1), form)


def _encoded(value: _Parts, form: FloatFormat) -> int:
    """Return a number's bits, rounded to nearest, ties to even."""
    sign = value.sign << (form.width - 1)
    infinite = sign | (form.top << (form.precision - 1))
    if value.is_infinite:
        return infinite
    if not value.number:
        return sign
    lowest = 2 - form.bias - form.precision
    power = max(value.number.bit_length() + value.power - form.precision, lowest)
    drop = power - value.power
    if drop <= 0:
        number = value.number << -drop
    else:
        number, rest = value.number >> drop, value.number & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        number += rest > half or (rest == half and number & 1)
    # A carry out of the number raises the exponent by itself: the fields are next to each other.
    field = max(power - lowest, 0)
    low = (field << (form.precision - 1)) + number
    return min(sign + low, infinite)


# --- operands -----------------------------------------------------------------------------------


def random_operands(form: FloatFormat, numbers: np.random.Generator, count: int) -> list[Bits]:
    """Return three operands that reach every kind of rounding.

    They are random bits, numbers near to each other, products and quotients at the edge of the
    subnormal numbers, subnormal numbers, and every pair of special values.

    Args:
        form: of the operands.
        numbers: where they come from.
        count: of each operand.
    """
    kinds = numbers.integers(0, 8, count)
    top, bias, edge = form.top, form.bias, form.precision + 3
    near = numbers.integers(-edge, edge + 1, count)
    small = numbers.integers(-8, 9, count)
    first = numbers.integers(0, top + 1, count)
    second = numbers.integers(0, top + 1, count)
    first = np.where(kinds == 3, bias + small, first)
    second = np.select(
        [kinds == 2, kinds == 3, kinds == 4, kinds == 5],
        [first + near, bias + near // 2, bias + 1 - first + near, first + bias - 1 + near], second,
    )  # fmt: skip
    first = np.where(kinds == 6, 0, first)
    first, second = (np.clip(field, 0, top) for field in (first, second))
    third = np.where(kinds == 1, numbers.integers(0, top + 1, count), first + second - bias + near)
    fields = (np.clip(third, 0, top), first, second)
    operands = [_with_field(field, form, numbers) for field in fields]
    special = _specials(form)
    pairs = min(count, len(special) ** 2)
    at = np.arange(pairs)
    for operand, index in zip(operands, (at // 7, at, at // len(special)), strict=True):
        operand[:pairs] = special[index % len(special)]
    return operands


def _with_field(field: NDArray[np.int64], form: FloatFormat, numbers: np.random.Generator) -> Bits:
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
