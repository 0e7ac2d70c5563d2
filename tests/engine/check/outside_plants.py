"""Faults that an outsider would plant: PyTorch itself is changed, the check knows nothing of it.

Each one changes what an operation of PyTorch returns on the CPU, in one dtype, one layout, one
range of sizes, or after some calls. `tests/bench/plants.py` makes the table of docs/check.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Change = Callable[[Tensor], Tensor]
    When = Callable[[Tensor, tuple[Any, ...]], bool]


def always(_result: Tensor, _args: tuple[Any, ...]) -> bool:
    return True


def in_dtype(*names: str) -> When:
    dtypes = {getattr(torch, name) for name in names}
    return lambda result, _args: result.dtype in dtypes


def from_dtype(name: str) -> When:
    dtype = getattr(torch, name)
    return lambda _result, args: isinstance(args[0], torch.Tensor) and args[0].dtype is dtype


def larger_than(count: int) -> When:
    return lambda result, _args: result.numel() > count


def smaller_than(count: int) -> When:
    return lambda result, _args: 1 < result.numel() < count


def not_contiguous(_result: Tensor, args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, torch.Tensor) and not one.is_contiguous() for one in args)


def without_last_bits(bits: int) -> Change:
    """Return a change that clears the last bits of a float."""

    def change(result: Tensor) -> Tensor:
        whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[result.element_size()]
        return (result.contiguous().view(whole) & ~((1 << bits) - 1)).view(result.dtype)

    return change


def times(factor: float) -> Change:
    return lambda result: result * factor


def zeros(result: Tensor) -> Tensor:
    return torch.zeros_like(result)


def without_subnormals(result: Tensor) -> Tensor:
    tiny = torch.finfo(result.dtype).tiny
    return torch.where(result.abs() < tiny, torch.zeros_like(result), result)


def negative_by_an_ulp(result: Tensor) -> Tensor:
    bits = result.contiguous().view(torch.int32)
    return torch.where(result < -1, bits ^ 1, bits).view(torch.float32)


def last_element(result: Tensor) -> Tensor:
    other = result.contiguous().clone()
    flat = other.view(-1)
    flat[-1:] = flat[-1:] + 1
    return other


def not_a_number(result: Tensor) -> Tensor:
    other = result.contiguous().clone()
    other.view(-1)[:1] = float("nan")
    return other


def ones(result: Tensor) -> Tensor:
    return torch.ones_like(result)


def reversed_rows(result: Tensor) -> Tensor:
    return result.flip(-1) if result.dim() else result


def all_tensors(change: Change) -> Callable[[Any], Any]:
    """Return a change of a result that may be several tensors."""

    def of(result: Any) -> Any:
        if isinstance(result, torch.Tensor):
            return change(result)
        return type(result)(None if one is None else change(one) for one in result)

    return of


@dataclass(frozen=True, slots=True)
class OutsidePlant:
    """A fault in words.

    Attributes:
        title: in words.
        found_by: in the title of a part of `compute` that finds it; of a `memory` or `link` fault,
            the stage's name.
        operations: PyTorch's names of the operations, without an underscore at the end.
        change: of a result.
        when: whether a result is changed.
        after: how many calls are right before.
    """

    title: str
    found_by: str
    operations: tuple[str, ...]
    change: Change
    when: When = always
    after: int = 0

    def planted(self) -> _Planted:
        """Return a context in which PyTorch has the fault."""
        return _Planted(self)


class _Planted(TorchDispatchMode):
    def __init__(self, plant: OutsidePlant) -> None:
        super().__init__()
        self._plant, self._calls = plant, 0
        self._change = all_tensors(plant.change)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        is_in_place = name.endswith("_") and not name.startswith("_")
        if name.removesuffix("_") not in self._plant.operations:
            return result
        first = result if isinstance(result, torch.Tensor) else result[0]
        if first.device.type == "meta" or not self._plant.when(first, args):
            return result
        self._calls += 1
        if self._calls <= self._plant.after:
            return result
        changed = self._change(result)
        if is_in_place:
            return result.copy_(changed)
        return changed


_MATMULS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot")
_RANDOM = ("random", "uniform", "normal", "bernoulli", "randperm", "rand", "randn", "randint")

OUTSIDE_PLANTS: tuple[OutsidePlant, ...] = (
    # The kinds of the first table: each was found by nothing before.
    OutsidePlant(
        "products with 12 of 24 significant bits",
        "Exact products in float32",
        _MATMULS,
        without_last_bits(12),
        in_dtype("float32"),
    ),
    OutsidePlant("sigmoid halved", "sigmoid in", ("sigmoid",), times(0.5)),
    OutsidePlant("tanh halved", "tanh in", ("tanh",), times(0.5)),
    OutsidePlant("cos halved", "cos in", ("cos",), times(0.5)),
    OutsidePlant(
        "convolution doubled",
        "Convolution 1 × 1",
        ("convolution", "mkldnn_convolution", "convolution_overrideable"),
        times(2.0),
    ),
    OutsidePlant(
        "gradients of a convolution tripled",
        "Convolution 1 × 1",
        ("convolution_backward",),
        times(3.0),
    ),
    OutsidePlant(
        "gradients of a function tripled",
        "gradient of sigmoid",
        ("sigmoid_backward", "tanh_backward"),
        times(3.0),
    ),
    OutsidePlant(
        "division without its last 8 bits",
        "IEEE ÷ in float32",
        ("div",),
        without_last_bits(8),
        in_dtype("float32", "float64"),
    ),
    OutsidePlant(
        "int8 results zero",
        "Whole numbers in int8",
        ("add", "sub", "mul", "bitwise_and"),
        zeros,
        in_dtype("int8"),
    ),
    OutsidePlant(
        "uint8 results zero",
        "Whole numbers in uint8",
        ("add", "sub", "mul", "bitwise_or"),
        zeros,
        in_dtype("uint8"),
    ),
    OutsidePlant(
        "int16 results zero",
        "Whole numbers in int16",
        ("add", "sub", "mul"),
        zeros,
        in_dtype("int16"),
    ),
    OutsidePlant(
        "bool results zero", "lt in", ("logical_and", "eq", "lt"), zeros, in_dtype("bool")
    ),
    OutsidePlant(
        "complex results zero", "add, complex", ("add", "mul"), zeros, in_dtype("complex64")
    ),
    OutsidePlant("random numbers always 1", "Random numbers: uniform", _RANDOM, ones),
    # Others.
    OutsidePlant(
        "sum wrong in the last bit",
        "IEEE + in float32",
        ("add",),
        without_last_bits(1),
        in_dtype("float32"),
    ),
    OutsidePlant(
        "subnormal products flushed",
        "IEEE × in float32",
        ("mul",),
        without_subnormals,
        in_dtype("float32"),
    ),
    OutsidePlant(
        "subnormal quotients flushed in float64",
        "IEEE ÷ in float64",
        ("div",),
        without_subnormals,
        in_dtype("float64"),
    ),
    OutsidePlant(
        "negative products wrong by an ULP",
        "IEEE × in float32",
        ("mul",),
        negative_by_an_ulp,
        in_dtype("float32"),
    ),
    OutsidePlant(
        "multiply-add without its last bit",
        "IEEE multiply-add in float32",
        ("addcmul",),
        without_last_bits(1),
        in_dtype("float32"),
    ),
    OutsidePlant(
        "square roots in float16 without their last 2 bits",
        "IEEE √ in float16",
        ("sqrt",),
        without_last_bits(2),
        in_dtype("float16"),
    ),
    OutsidePlant(
        "last element wrong in large tensors only",
        "IEEE + in",
        ("add", "mul"),
        last_element,
        larger_than(1 << 20),
    ),
    OutsidePlant(
        "last element wrong in small tensors only",
        "exp in",
        ("exp",),
        last_element,
        smaller_than(100),
    ),
    OutsidePlant("exp wrong if not contiguous", "exp in", ("exp",), times(1.001), not_contiguous),
    OutsidePlant("log wrong after 20 calls", "log in", ("log",), times(1.001), after=20),
    OutsidePlant("NaN in a softmax", "softmax in", ("_softmax",), not_a_number),
    OutsidePlant(
        "layer_norm off by 1 %",
        "layer_norm in",
        ("native_layer_norm",),
        times(1.01),
        in_dtype("float32"),
    ),
    OutsidePlant("sort in the wrong order", "sort in", ("sort",), reversed_rows),
    OutsidePlant("cumsum loses its last element", "cumsum in", ("cumsum",), last_element),
    OutsidePlant("gather from the wrong place", "Random gather", ("gather",), reversed_rows),
    OutsidePlant(
        "where takes the other side", "where in int64", ("where",), last_element, in_dtype("int64")
    ),
    OutsidePlant(
        "shift of int32 one too few",
        "left shift in int32",
        ("bitwise_left_shift", "__lshift__"),
        last_element,
        in_dtype("int32"),
    ),
    OutsidePlant("comparison turned round", "lt in", ("lt",), lambda result: ~result),
    OutsidePlant(
        "cast of int64 to float64 wrong",
        "to float64 in int64",
        ("_to_copy",),
        last_element,
        lambda result, args: result.dtype is torch.float64 and args[0].dtype is torch.int64,
    ),
    OutsidePlant(
        "bfloat16 products without their last bit",
        "Products of all 8 bits",
        _MATMULS,
        without_last_bits(1),
        in_dtype("bfloat16"),
    ),
    OutsidePlant(
        "float64 products with float32's bits",
        "Products of all 53 bits",
        _MATMULS,
        lambda result: result.float().double(),
        in_dtype("float64"),
    ),
    OutsidePlant(
        "complex products conjugated",
        "Exact products in complex128",
        ("mm", "mul"),
        lambda result: result.conj().clone(),
        in_dtype("complex128"),
    ),
    OutsidePlant("batched products only", "Exact products in float32", ("bmm",), last_element),
    OutsidePlant(
        "argmax one too far",
        "max with place",
        ("argmax", "argmin", "max"),
        last_element,
        in_dtype("int64"),
    ),
    OutsidePlant(
        "erf without its last 10 bits",
        "erf in float32",
        ("erf",),
        without_last_bits(10),
        in_dtype("float32"),
    ),
    OutsidePlant(
        "permutation with a number twice",
        "Random numbers: permutation",
        ("randperm",),
        last_element,
    ),
    OutsidePlant(
        "uniform numbers without their last bits",
        "Real numbers from a seed",
        ("uniform", "rand"),
        lambda result: result.mul(16).floor().div(16),
    ),
    OutsidePlant("maximum forgets NaN", "fmax in", ("fmax",), not_a_number),
    OutsidePlant(
        "float16 products summed without their last bits",
        "Products of all 11 bits",
        _MATMULS,
        without_last_bits(1),
        in_dtype("float16"),
    ),
    OutsidePlant(
        "rounding half up",
        "round in",
        ("round",),
        lambda result: result + (result % 2 == 0) * 0.5,
        in_dtype("float32", "float64"),
    ),
    OutsidePlant(
        "remainder with the other sign",
        "remainder in",
        ("remainder",),
        lambda result: -result,
        in_dtype("int32", "float32"),
    ),
    OutsidePlant("scatter_add loses a number", "scatter_add in", ("scatter_add",), last_element),
    OutsidePlant(
        "pow off by 2^-15", "pow in float32", ("pow",), times(1 + 2.0**-15), in_dtype("float32")
    ),
    OutsidePlant(
        "gelu of negative numbers zero",
        "gelu in float32",
        ("gelu",),
        lambda result: result.clamp_min(0),
    ),
    OutsidePlant(
        "mean of rows off by an ULP in 100",
        "mean in float64",
        ("mean",),
        times(1 + 2.0**-50),
        in_dtype("float64"),
    ),
    OutsidePlant(
        "normal numbers with half their spread",
        "Random numbers: normal",
        ("normal", "randn"),
        times(0.5),
    ),
    OutsidePlant(
        "bitwise_not of uint8 without its highest bit",
        "bitwise_not in uint8",
        ("bitwise_not",),
        lambda result: result & 127,
        in_dtype("uint8"),
    ),
    OutsidePlant(
        "a copy without its last element",
        "transpose in",
        ("clone", "copy"),
        last_element,
        not_contiguous,
    ),
    # Of memory and link.
    OutsidePlant(
        "a comparison blind to the high 32 bits",
        "memory",
        ("bitwise_xor",),
        lambda result: result & 0xFFFFFFFF,
        in_dtype("int64"),
    ),
    OutsidePlant("a count that is always 0", "memory", ("count_nonzero",), zeros),
    OutsidePlant(
        "bit 40 of a written word stuck at 0",
        "memory",
        ("copy",),
        lambda result: result & ~(1 << 40),
        in_dtype("int64"),
    ),
    OutsidePlant(
        "bit 62 of a written word stuck at 1",
        "memory",
        ("copy",),
        lambda result: result | (1 << 62),
        in_dtype("int64"),
    ),
    OutsidePlant(
        "the last word of a copy is lost", "memory", ("copy",), last_element, in_dtype("int64")
    ),
    OutsidePlant(
        "copies over 64 MiB lose their end",
        "link",
        ("_to_copy", "copy", "clone"),
        last_element,
        larger_than((64 << 20) // 4),
    ),
    OutsidePlant(
        "copies with a bit stuck",
        "link",
        ("_to_copy", "copy"),
        lambda result: result | 4,
        in_dtype("int32"),
    ),
)
