"""Numbers without PyTorch: their bits, their rounding, their distances, and how they lie.

PyTorch on the CPU is itself a device under test, so it is never the reference: numpy is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[Any]
    Bits = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format; ``precision`` counts the hidden bit."""

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


FORMATS: tuple[FloatFormat, ...] = (
    FloatFormat("float32", 24, 8), FloatFormat("float64", 53, 11), FloatFormat("float16", 11, 5),
    FloatFormat("bfloat16", 8, 8),
)  # fmt: skip
_BY_NAME = {one.name: one for one in FORMATS}
_BY_NAME |= {"complex64": _BY_NAME["float32"], "complex128": _BY_NAME["float64"]}


def format_of(name: str) -> FloatFormat:
    """Return the format of a float dtype, or of the parts of a complex one."""
    return _BY_NAME[name]


def carrier(dtype: str) -> str:
    """Return the numpy dtype that holds the numbers of a dtype."""
    return "float32" if dtype == "bfloat16" else dtype


def to_tensor(bits: Bits, form: FloatFormat) -> Tensor:
    """Return a CPU tensor with these bits."""
    dtype: torch.dtype = getattr(torch, form.name)
    return torch.from_numpy(bits.view(f"int{form.width}").copy()).view(dtype)


def to_bits(seen: Tensor) -> Bits:
    """Return the bits of a contiguous float tensor on the CPU."""
    width = 8 * seen.element_size()
    return seen.view(getattr(torch, f"int{width}")).numpy().view(f"uint{width}")


def numbers_of(bits: Bits, form: FloatFormat) -> Array:
    """Return the numbers with these bits, in the dtype that holds them."""
    if form.name == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(form.name)


def rounded(values: Array, form: FloatFormat) -> Bits:
    """Return the bits of numbers rounded to nearest, ties to even; to bfloat16 from float32."""
    with np.errstate(all="ignore"):
        if form.name != "bfloat16":
            return values.astype(form.name).view(form.bits_dtype)
        near = values.astype(np.float32).view(np.uint32)
        result = (near + 0x7FFF + ((near >> 16) & 1)) >> 16
        return np.where(np.isnan(values), 0x7FC0, result).astype(np.uint16)


def fitted(values: Array, dtype: str) -> Array:
    """Return the nearest values that a dtype has, in the numpy dtype that holds them."""
    if dtype == "bfloat16":
        form = format_of(dtype)
        return numbers_of(rounded(values, form), form)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def tensor_of(values: Array, dtype: str) -> Tensor:
    """Return values as a CPU tensor, made without an operation of PyTorch."""
    if dtype == "bfloat16" and values.dtype.kind == "f":
        form = format_of(dtype)
        return to_tensor(rounded(values, form), form)
    return torch.from_numpy(np.ascontiguousarray(values))


def values_of(tensor: Tensor) -> Array:
    """Return a tensor's values: float64, complex128, a whole number's dtype, or bool."""
    here = tensor.detach().cpu().contiguous()
    if here.dtype is torch.bfloat16:
        return wide(numbers_of(to_bits(here), format_of("bfloat16")))
    return wide(here.numpy())


def wide(values: Array) -> Array:
    """Return floats as float64, complex numbers as complex128, and others as they are."""
    kind = {"f": np.float64, "c": np.complex128}.get(values.dtype.kind)
    with np.errstate(invalid="ignore"):  # a signaling NaN
        return values if kind is None else values.astype(kind)


def ulp_of(values: Array, dtype: str) -> Array:
    """Return the distance between neighboring numbers of a float dtype at these values."""
    form = format_of(dtype)
    _, exponents = np.frexp(values)
    result: Array = np.ldexp(1.0, np.maximum(exponents, 2 - form.bias) - form.precision)
    return result


def differing(seen: Array, exact: Array, slack: Array | None = None) -> NDArray[np.bool_]:
    """Return which values are wrong; of another shape, all are.

    Args:
        seen: the device's values.
        exact: the answers. 0 and −0 are equal; NaN equals NaN.
        slack: how far a value may be away; None if it has to be equal.
    """
    if seen.shape != exact.shape:
        return np.ones(exact.shape, dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        is_equal = (seen == exact) | ((seen != seen) & (exact != exact))
        if slack is not None:
            is_equal |= np.abs(seen - exact) <= slack
    result: NDArray[np.bool_] = ~is_equal
    return result


LAYOUTS = ("contiguous", "transposed", "strided", "sliced")


def laid_out(values: Tensor, layout: str, device: torch.device) -> Tensor:
    """Return the same values on a device, in memory that lies in another way.

    The memory between and around the values is zero.

    Args:
        values: a contiguous tensor of two or more dimensions, on the CPU.
        layout: one of `LAYOUTS`.
        device: the device.
    """
    *others, rows, columns = values.shape
    if layout == "contiguous":
        return values.to(device, copy=True)
    if layout == "transposed":
        turned = tuple(reversed(range(values.dim())))
        return values.permute(turned).contiguous().to(device).permute(turned)
    # Copied as a whole: the test of a layout must not depend on a copy in that layout.
    if layout == "strided":
        wide = torch.zeros(*others, rows, 2 * columns, dtype=values.dtype)
        wide[..., ::2] = values
        return wide.to(device)[..., ::2]
    large = torch.zeros(*others, rows + 4, columns + 5, dtype=values.dtype)
    at = (..., slice(3, 3 + rows), slice(2, 2 + columns))
    large[at] = values
    return large.to(device)[at]
