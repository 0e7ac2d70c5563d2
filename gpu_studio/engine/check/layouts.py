"""Does PyTorch compute correctly here? Every way a tensor may lie, and known answers.

The document "the bug that taught me more about PyTorch than years of using it" (Elana Pearl) is
about a result that only one kind of device got wrong, and only in one layout: `addcmul_` wrote its
result into a copy of a non-contiguous tensor. Only the same combination finds such a fault: the
operation in place or with ``out=``, on a tensor that is not contiguous. The other operands may be
contiguous, so that case is tested as well.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from gpu_studio.engine.check.known_answers import answer_works
from gpu_studio.engine.check.known_work import (
    LAYOUTS,
    KnownWork,
    Prepared,
    exactly,
    in_turns,
    laid_out,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from torch import Tensor

    from gpu_studio.engine.check.stage_run import StageRun

_SIZES = ((17, 33), (5, 17, 33))
_LARGE_SIZE = (320, 330)  # kernels take another way for more than 100,000 elements
_NEW, _IN_PLACE, _OUT = "new", "in place", "out="

# (dtype, the largest whole number): sums of 33 products and all partial sums are exact. float16
# is exact up to 2048, bfloat16 up to 256.
DTYPES: tuple[tuple[str, int], ...] = (
    ("float32", 8), ("float16", 3), ("bfloat16", 1), ("float64", 8), ("int64", 8),
)  # fmt: skip


class Operation(NamedTuple):
    """A method of a tensor of whole numbers.

    Attributes:
        name: PyTorch's; in place it has a ``_``, and with ``out=`` it is a function.
        others: the other arguments, made of a tensor of whole numbers and one of powers of two.
        options: by keyword.
        forms: those that PyTorch has.
        is_for_floats: whether whole dtypes lack it.
    """

    name: str
    others: Callable[[Tensor, Tensor], tuple[Any, ...]] = lambda b, _c: (b,)
    options: dict[str, Any] = {}  # noqa: RUF012  # never changed
    forms: tuple[str, ...] = (_NEW, _IN_PLACE, _OUT)
    is_for_floats: bool = False

    def work(self, form: str, a: Tensor, b: Tensor, c: Tensor, out: Tensor | None = None) -> Tensor:
        """Return the result in a form: a new tensor, ``a``, or ``out``."""
        others = self.others(b, c)
        result: Tensor
        if form == _OUT:
            result = getattr(torch, self.name)(a, *others, **self.options, out=out)
        else:
            name = f"{self.name}_" if form == _IN_PLACE else self.name
            result = getattr(a, name)(*others, **self.options)
        return result


# The document's fault was in addcmul_ and addcdiv_; random_ and bernoulli_ had it as well. Here
# they write ones, which is known.
OPERATIONS: tuple[Operation, ...] = (
    Operation("addcmul", lambda b, c: (b, c), {"value": 0.5}, is_for_floats=True),
    Operation("addcdiv", lambda b, c: (b, c), {"value": 2}, is_for_floats=True),
    Operation("add"),
    Operation("sub", options={"alpha": 2}),
    Operation("mul"),
    Operation("div", lambda _b, c: (c,), is_for_floats=True),
    Operation("lerp", lambda b, _c: (b, 0.5), is_for_floats=True),
    Operation("abs", lambda _b, _c: ()),
    Operation("clamp", lambda _b, _c: (0, 4)),
    Operation("tril", lambda _b, _c: ()),
    Operation("cumsum", lambda _b, _c: (1,)),
    Operation("masked_fill", lambda b, _c: (b > 0, 7), forms=(_NEW, _IN_PLACE)),
    Operation("clone", lambda _b, _c: (), forms=(_NEW,)),
    Operation("copy", forms=(_IN_PLACE,)),
    Operation("fill", lambda _b, _c: (3,), forms=(_IN_PLACE,)),
    Operation("random", lambda _b, _c: (1, 2), forms=(_IN_PLACE,)),
    Operation("bernoulli", lambda _b, _c: (1.0,), forms=(_IN_PLACE,), is_for_floats=True),
    Operation("where", lambda b, c: (b > 0, c), forms=(_NEW,)),
    Operation("maximum", forms=(_NEW, _OUT)),
    Operation("sum", lambda _b, _c: (0,), forms=(_NEW,)),
    Operation("flip", lambda _b, _c: (1,), forms=(_NEW,)),
    Operation("index_select", lambda b, _c: (0, torch.arange(0, b.shape[0], 2, device=b.device)),
              forms=(_NEW, _OUT)),
    Operation("matmul", lambda b, _c: (b.transpose(-1, -2),), forms=(_NEW, _OUT),
              is_for_floats=True),
)  # fmt: skip


def layouts(run: StageRun) -> Generator[str, None, bool]:
    """Test operations in every layout, then those with known answers; a stage, see `StageRun`."""
    return in_turns(run, [*layout_works(), *answer_works()])


def layout_works() -> list[KnownWork]:
    """Return every form of every operation in every dtype that has it, in every layout."""
    return [
        KnownWork(
            f"{operation.name}{'_' * (form == _IN_PLACE)}{f' ({form})' * (form != _NEW)} in "
            f"{dtype}, {written}{f' with {others} operands' * (written != others)}",
            dtype, partial(_laid_out, operation, form, dtype, largest, written, others),
            "disagreement", has_products=operation.name == "matmul",
        )
        for dtype, largest in DTYPES
        for operation in OPERATIONS
        if not (operation.is_for_floats and dtype.startswith("int"))
        for form in operation.forms
        for written, others in _layouts(form)
    ]  # fmt: skip


def _layouts(form: str) -> Iterator[tuple[str, str]]:
    """Yield the layout of the tensor that is written, with that of the others."""
    for layout in LAYOUTS:
        yield layout, layout
        if form != _NEW and layout != "contiguous":
            yield layout, "contiguous"


def operands(
    generator: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype, largest: int
) -> list[Tensor]:
    """Return three operands: whole numbers, whole numbers, and powers of two."""

    def whole() -> Tensor:
        return torch.randint(-largest, largest + 1, shape, generator=generator).to(dtype)

    lowest = -2 if dtype.is_floating_point else 0
    exponents = torch.randint(lowest, 3, shape, generator=generator)
    return [whole(), whole(), torch.pow(2.0, exponents).to(dtype)]


def _laid_out(
    operation: Operation, form: str, dtype_name: str, largest: int, written: str, others: str,
    run: StageRun,
) -> Prepared:  # fmt: skip
    """Prepare one form of an operation in one layout, on small tensors and on a large one.

    Its exact results have no layout: they are contiguous, float64, and from the CPU.
    """
    dtype: torch.dtype = getattr(torch, dtype_name)
    # Many elements take a busy CPU long.
    has_large = dtype is torch.float32 and written == "strided"
    sizes = (*_SIZES, _LARGE_SIZE) if has_large else _SIZES
    sources = [operands(run.generator, size, dtype, largest) for size in sizes]
    exact = [
        operation.work(
            _NEW if form == _OUT else form, *(one.to(torch.float64, copy=True) for one in each)
        )
        for each in sources
    ]

    def work() -> Tensor:
        pieces: list[Tensor] = []
        for (a, b, c), like in zip(sources, exact, strict=True):
            first = laid_out(a, written if form == _IN_PLACE else others, run.device)
            second, third = (laid_out(one, others, run.device) for one in (b, c))
            ones = torch.ones_like(like, dtype=dtype)
            out = laid_out(ones, written, run.device) if form == _OUT else None
            result = operation.work(form, first, second, third, out)
            pieces += _with_surroundings(result, is_new=form == _NEW)
        return torch.cat(pieces)

    clean = [] if form == _NEW else [np.zeros(1)]
    return exactly(work, np.concatenate([
        part for one in exact for part in (values_of(one).reshape(-1), *clean)
    ]))  # fmt: skip


def _with_surroundings(result: Tensor, *, is_new: bool) -> list[Tensor]:
    """Return the values of a result, and how many numbers around them in its memory are not 0."""
    memory = _storage_of(result)
    there = memory.as_strided(result.shape, result.stride(), result.storage_offset())
    values = there.reshape(-1).clone()
    if is_new:
        return [values]
    there.zero_()  # what is left was written around the values
    return [values, memory.count_nonzero().to(memory.dtype).reshape(1)]


def _storage_of(result: Tensor) -> Tensor:
    """Return all the memory of a result, on the CPU: copied as a whole, without its layout.

    A copy in that layout on the device would be part of the test.
    """
    memory = torch.empty(0, dtype=result.dtype, device=result.device)
    memory.set_(result.untyped_storage())
    return memory.to("cpu", copy=True)
