"""The operations that a check compares: small numbers, so that every result is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Work = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on three tensors of one shape: two of whole numbers, one of powers of two.

    Attributes:
        name: PyTorch's name.
        work: returns a new tensor.
        in_place: changes the first tensor and returns it; None if there is no such form.
        is_for_floats: whether PyTorch has it for floating-point numbers only.
        is_product: whether it is a matrix product, which some cards lack in some dtypes.
    """

    name: str
    work: Work
    in_place: Work | None = None
    is_for_floats: bool = False
    is_product: bool = False


class _InPlace:
    """A tensor whose methods are those in place."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        method: Callable[..., Tensor] = getattr(self._tensor, f"{name}_")
        return method


def _both(name: str, work: Work, *, is_for_floats: bool = False) -> Operation:
    """Return an operation that has a form in place: the same call, with a ``_`` in its name."""

    def in_place(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return work(_InPlace(a), b, c)  # type: ignore[arg-type]

    return Operation(name, work, in_place, is_for_floats)


# The document's fault was in addcmul_ and addcdiv_; random_ and bernoulli_ had it as well. Their
# numbers are random, so only the places that they write to are compared.
OPERATIONS: tuple[Operation, ...] = (
    _both("addcmul", lambda a, b, c: a.addcmul(b, c, value=0.5), is_for_floats=True),
    _both("addcdiv", lambda a, b, c: a.addcdiv(b, c, value=2), is_for_floats=True),
    _both("add", lambda a, b, c: a.add(b)),
    _both("sub", lambda a, b, c: a.sub(b, alpha=2)),
    _both("mul", lambda a, b, c: a.mul(b)),
    _both("div", lambda a, b, c: a.div(c), is_for_floats=True),
    _both("lerp", lambda a, b, c: a.lerp(b, 0.5), is_for_floats=True),
    _both("neg", lambda a, b, c: a.neg()),
    _both("abs", lambda a, b, c: a.abs()),
    _both("sign", lambda a, b, c: a.sign()),
    _both("clamp", lambda a, b, c: a.clamp(0, 4)),
    _both("square", lambda a, b, c: a.square()),
    _both("relu", lambda a, b, c: a.relu()),
    _both("masked_fill", lambda a, b, c: a.masked_fill(b > 0, 7)),
    _both("tril", lambda a, b, c: a.tril()),
    _both("cumsum", lambda a, b, c: a.cumsum(1)),
    Operation("copy", lambda a, b, c: a.clone(), lambda a, b, c: a.copy_(b)),
    Operation("fill", lambda a, b, c: torch.full_like(a, 3), lambda a, b, c: a.fill_(3)),
    Operation("random", lambda a, b, c: torch.randint_like(a, 1, 9).clamp(0, 1),
              lambda a, b, c: a.zero_().random_(1, 9).clamp_(0, 1)),
    Operation("bernoulli", lambda a, b, c: torch.bernoulli(torch.ones_like(a)),
              lambda a, b, c: a.zero_().bernoulli_(1.0), is_for_floats=True),
    Operation("reciprocal", lambda a, b, c: c.reciprocal(), is_for_floats=True),
    Operation("where", lambda a, b, c: torch.where(b > 0, a, c)),
    Operation("maximum", lambda a, b, c: torch.maximum(a, b)),
    Operation("sum", lambda a, b, c: a.sum(0)),
    Operation("flip", lambda a, b, c: a.flip(1)),
    Operation("index_select", lambda a, b, c: a.index_select(0, _every_other(a))),
    Operation("matmul", lambda a, b, c: a.matmul(b.t()), is_for_floats=True, is_product=True),
)  # fmt: skip

# (dtype, the largest whole number): sums of 128 products and all partial sums are exact. float16
# is exact up to 2048, bfloat16 up to 256.
DTYPES: tuple[tuple[torch.dtype, int], ...] = (
    (torch.float32, 8), (torch.float16, 3), (torch.bfloat16, 1), (torch.float64, 8),
    (torch.int32, 8),
)  # fmt: skip


def operands(
    generator: torch.Generator, shape: tuple[int, int], dtype: torch.dtype, largest: int
) -> list[Tensor]:
    """Return the three operands: whole numbers, whole numbers, and powers of two.

    Args:
        generator: of the numbers.
        shape: of each.
        dtype: of each.
        largest: the largest absolute value of a whole number.
    """

    def whole() -> Tensor:
        return torch.randint(-largest, largest + 1, shape, generator=generator).to(dtype)

    lowest = -2 if dtype.is_floating_point else 0
    exponents = torch.randint(lowest, 3, shape, generator=generator)
    return [whole(), whole(), torch.pow(2.0, exponents).to(dtype)]


def _every_other(a: Tensor) -> Tensor:
    return torch.arange(0, a.shape[0], 2, device=a.device)
