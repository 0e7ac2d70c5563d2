"""Faults that an outsider would plant: PyTorch itself is changed, the check knows nothing of it.

Each one changes what an operation of PyTorch returns on the CPU, in one dtype, one layout, one
range of sizes, or after some calls. `tests/bench/plants.py` makes the table of check.md.
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


def larger_than(count: int) -> When:
    return lambda result, _args: result.numel() > count


def smaller_than(count: int) -> When:
    return lambda result, _args: 1 < result.numel() < count


def not_contiguous(_result: Tensor, args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, torch.Tensor) and not one.is_contiguous() for one in args)


def without_last_bits(bits: int) -> Change:
    def change(result: Tensor) -> Tensor:
        whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[result.element_size()]
        return (result.contiguous().view(whole) & ~((1 << bits) - 1)).view(result.dtype)

    return change


def times(factor: float) -> Change:
    return lambda result: result * factor


def without_subnormals(result: Tensor) -> Tensor:
    tiny = torch.finfo(result.dtype).tiny
    return torch.where(result.abs() < tiny, torch.zeros_like(result), result)


def negative_by_an_ulp(result: Tensor) -> Tensor:
    bits = result.contiguous().view(torch.int32)
    return torch.where(result < -1, bits ^ 1, bits).view(torch.float32)


def of_one_multiprocessor(result: Tensor) -> Tensor:
    """Return a result in which one of 128 multiprocessors works on each block of 1,024 elements."""
    other = result.contiguous().clone()
    blocks = other.view(-1)[: other.numel() // 1024 * 1024].view(-1, 1024)
    blocks[37::128] ^= 4
    return other


def last_element(result: Tensor) -> Tensor:
    other = result.contiguous().clone()
    flat = other.view(-1)
    flat[-1:] = flat[-1:] + 1
    return other


def not_a_number(result: Tensor) -> Tensor:
    other = result.contiguous().clone()
    other.view(-1)[:1] = float("nan")
    return other


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
        found_by: the begin of the title of the kind of work that finds it; of a fault that
            ``memory`` or ``link`` finds, the stage's name.
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
        if is_in_place or "out" in (kwargs or {}):
            return result.copy_(changed)
        return changed


_MATMULS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot")
_COPIES = ("_to_copy", "copy")

OUTSIDE_PLANTS: tuple[OutsidePlant, ...] = tuple(
    OutsidePlant(*row)  # type: ignore[arg-type]
    for row in (
        # Of a chip.
        ("one multiprocessor of 128", "Whole numbers that fill", ("mul",), of_one_multiprocessor,
         lambda result, _args: result.dtype is torch.int32 and result.numel() > 1 << 24),
        ("products with 12 of 24 significant bits", "Exact products in float32", _MATMULS,
         without_last_bits(12), in_dtype("float32")),
        ("complex products conjugated", "Exact products in complex128", ("mm", "mul"),
         lambda result: result.conj().clone(), in_dtype("complex128")),
        ("int8 products with a wrong sum", "Products in int8", ("_int_mm",), last_element),
        ("gradients of a convolution tripled", "Convolution 1 × 1", ("convolution_backward",),
         times(3.0)),
        ("subnormal products flushed", "IEEE × in float32", ("mul",), without_subnormals,
         in_dtype("float32")),
        ("negative products wrong by an ULP", "IEEE × in float32", ("mul",), negative_by_an_ulp,
         in_dtype("float32")),
        ("multiply-add without its last bit", "IEEE multiply-add in float32", ("addcmul",),
         without_last_bits(1), in_dtype("float32")),
        ("last element wrong in large tensors only", "IEEE + in", ("add", "mul"), last_element,
         larger_than(1 << 18)),
        ("int8 results zero", "Whole numbers in int8", ("mul", "bitwise_and"), torch.zeros_like,
         in_dtype("int8")),
        ("gather from the wrong place", "Random gather", ("gather",), reversed_rows),
        ("uniform numbers without their last bits", "Random numbers: uniform",
         ("uniform", "rand"), lambda result: result.mul(1024).floor().div(1024)),
        ("permutation with a number twice", "Random numbers: permutation", ("randperm",),
         last_element),
        # Of PyTorch.
        ("exp wrong if not contiguous", "exp in", ("exp",), times(1.001), not_contiguous),
        ("log wrong after 3 calls", "log in", ("log",), times(1.001), always, 3),
        ("last element wrong in small tensors only", "tanh in", ("tanh",), last_element,
         smaller_than(100)),
        ("gradients of a function tripled", "gradient of sigmoid", ("sigmoid_backward",),
         times(3.0)),
        ("NaN in a softmax", "softmax in", ("_softmax",), not_a_number),
        ("sort in the wrong order", "sort in", ("sort",), reversed_rows),
        ("comparison forgets NaN", "ge in float32", ("ge",), torch.ones_like),
        ("cast of int64 to float32 wrong", "to float32 in int64", ("_to_copy",), not_a_number,
         lambda result, args: result.dtype is torch.float32 and args[0].dtype is torch.int64),
        # Of memory and link.
        ("a comparison blind to the high 32 bits", "memory", ("bitwise_xor",),
         lambda result: result & 0xFFFFFFFF, in_dtype("int64")),
        ("a count that is always 0", "memory", ("count_nonzero",), torch.zeros_like),
        ("bit 40 of a written word stuck at 0", "memory", ("copy",),
         lambda result: result & ~(1 << 40), in_dtype("int64")),
        ("the last word of a copy is lost", "memory", ("copy",), last_element, in_dtype("int64")),
        ("copies over 64 MiB lose their end", "link", (*_COPIES, "clone"), last_element,
         larger_than((64 << 20) // 4)),
        ("copies with a bit stuck", "link", _COPIES, lambda result: result | 4, in_dtype("int32")),
    )
)  # fmt: skip
