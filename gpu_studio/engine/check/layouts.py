"""Does PyTorch compute correctly here? Every way a tensor may lie, and known answers.

The document "the bug that taught me more about PyTorch than years of using it" (Elana Pearl) is
about a result that only one kind of device got wrong, and only in one layout: `addcmul_` wrote its
result into a copy of a non-contiguous tensor. Only the same combination finds such a fault: the
operation in place or with ``out=``, on a tensor that is not contiguous. The other operands may be
contiguous, so that case is tested as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpu_studio.engine.check.compute import PartsStage
from gpu_studio.engine.check.detectors import Mismatch, mismatch_at
from gpu_studio.engine.check.formats import LAYOUTS, differing, laid_out, values_of
from gpu_studio.engine.check.known_answers import known_parts
from gpu_studio.engine.check.parts import Part
from gpu_studio.engine.device import refuse_bfloat16_products

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import FindingKind
    from gpu_studio.engine.check.formats import Array
    from gpu_studio.engine.check.stage import StageBench

    Work = Callable[[Any, Tensor, Tensor], Tensor]

_SIZES = ((17, 33), (5, 17, 33))
_LARGE_SIZE, _MANY = (320, 330), 100_000  # kernels take another way for many elements


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on three tensors of one shape: two of whole numbers, one of powers of two.

    ``work`` returns a new tensor, ``in_place`` changes the first one and returns it. ``has_out``:
    PyTorch has it with ``out=``. ``is_product``: a matrix product, which some cards lack.
    """

    name: str
    work: Work
    in_place: Work | None = None
    has_out: bool = False
    is_for_floats: bool = False
    is_product: bool = False


class _InPlace:
    """A tensor whose methods are those in place."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        method: Callable[..., Tensor] = getattr(self._tensor, f"{name}_")
        return method


class _IntoOut:
    """A tensor whose methods write to another one."""

    def __init__(self, tensor: Tensor, out: Tensor) -> None:
        self._tensor, self._out = tensor, out

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        function = getattr(torch, name)

        def method(*others: Any, **options: Any) -> Tensor:
            result: Tensor = function(self._tensor, *others, out=self._out, **options)
            return result

        return method


def _every_form(name: str, work: Work, *, is_for_floats: bool = False) -> Operation:
    """Return an operation whose other forms are the same call: with a ``_``, and with ``out=``."""

    def in_place(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return work(_InPlace(a), b, c)

    return Operation(name, work, in_place, True, is_for_floats)


# The document's fault was in addcmul_ and addcdiv_; random_ and bernoulli_ had it as well. Their
# numbers are random, so only the places that they write to are compared.
OPERATIONS: tuple[Operation, ...] = (
    _every_form("addcmul", lambda a, b, c: a.addcmul(b, c, value=0.5), is_for_floats=True),
    _every_form("addcdiv", lambda a, b, c: a.addcdiv(b, c, value=2), is_for_floats=True),
    _every_form("add", lambda a, b, c: a.add(b)),
    _every_form("sub", lambda a, b, c: a.sub(b, alpha=2)),
    _every_form("mul", lambda a, b, c: a.mul(b)),
    _every_form("div", lambda a, b, c: a.div(c), is_for_floats=True),
    _every_form("lerp", lambda a, b, c: a.lerp(b, 0.5), is_for_floats=True),
    _every_form("abs", lambda a, b, c: a.abs()),
    _every_form("clamp", lambda a, b, c: a.clamp(0, 4)),
    _every_form("tril", lambda a, b, c: a.tril()),
    _every_form("cumsum", lambda a, b, c: a.cumsum(1)),
    Operation("masked_fill", lambda a, b, c: a.masked_fill(b > 0, 7),
              lambda a, b, c: a.masked_fill_(b > 0, 7)),
    Operation("copy", lambda a, b, c: a.clone(), lambda a, b, c: a.copy_(b)),
    Operation("fill", lambda a, b, c: torch.full_like(a, 3), lambda a, b, c: a.fill_(3)),
    Operation("random", lambda a, b, c: torch.randint_like(a, 1, 9).clamp(0, 1),
              lambda a, b, c: a.zero_().random_(1, 9).clamp_(0, 1)),
    Operation("bernoulli", lambda a, b, c: torch.bernoulli(torch.ones_like(a)),
              lambda a, b, c: a.zero_().bernoulli_(1.0), is_for_floats=True),
    Operation("where", lambda a, b, c: torch.where(b > 0, a, c)),
    Operation("maximum", lambda a, b, c: a.maximum(b), has_out=True),
    Operation("sum", lambda a, b, c: a.sum(0)),
    Operation("flip", lambda a, b, c: a.flip(1)),
    Operation("index_select", lambda a, b, c: a.index_select(0, torch.arange(
              0, b.shape[0], 2, device=b.device)), has_out=True),
    Operation("matmul", lambda a, b, c: a.matmul(b.transpose(-1, -2)), has_out=True,
              is_for_floats=True, is_product=True),
)  # fmt: skip

# (dtype, the largest whole number): sums of 33 products and all partial sums are exact. float16
# is exact up to 2048, bfloat16 up to 256.
DTYPES: tuple[tuple[str, int], ...] = (
    ("float32", 8), ("float16", 3), ("bfloat16", 1), ("float64", 8), ("int64", 8),
)  # fmt: skip


def operands(
    generator: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype, largest: int
) -> list[Tensor]:
    """Return the three operands: whole numbers, whole numbers, and powers of two."""

    def whole() -> Tensor:
        return torch.randint(-largest, largest + 1, shape, generator=generator).to(dtype)

    lowest = -2 if dtype.is_floating_point else 0
    exponents = torch.randint(lowest, 3, shape, generator=generator)
    return [whole(), whole(), torch.pow(2.0, exponents).to(dtype)]


class LaidOut(Part):
    """One form of an operation in one dtype, in every layout.

    Args:
        operation: what to do.
        dtype: of the operands.
        largest: the largest absolute value of a whole number in them.
        way: ``new``, ``in place`` or ``out=``.
    """

    kind: FindingKind = "disagreement"

    def __init__(self, operation: Operation, dtype: str, largest: int, way: str) -> None:
        name = f"{operation.name}_" if way == "in place" else operation.name
        self.title = f"{name} in {dtype}" if way == "new" else f"{name} ({way}) in {dtype}"
        self.dtype = dtype
        self._operation, self._largest, self._way = operation, largest, way
        self._sources: list[list[Tensor]] = []
        self._exact: list[Array] = []

    def prepare(self, bench: StageBench) -> None:
        """Make new operands, and results without a layout: contiguous, float64, on the CPU."""
        if self._operation.is_product and self.dtype == "bfloat16":
            refuse_bfloat16_products(bench.device)
        dtype: torch.dtype = getattr(torch, self.dtype)
        sizes = (*_SIZES, _LARGE_SIZE) if dtype is torch.float32 else _SIZES
        self._sources = [operands(bench.generator, size, dtype, self._largest) for size in sizes]
        work = self._operation.in_place if self._way == "in place" else self._operation.work
        assert work is not None
        self._exact = [
            values_of(work(*(one.to(torch.float64, copy=True) for one in sources)))
            for sources in self._sources
        ]

    def result(self, bench: StageBench) -> Tensor:
        """Return the results of all cases, each with what was around it in its memory."""
        every: list[Tensor] = []
        for sources, exact in zip(self._sources, self._exact, strict=True):
            for _, layouts in self._cases(sources[0]):
                result = self._worked(sources, layouts, exact, bench.device)
                memory = _storage_of(result)
                there = memory.as_strided(result.shape, result.stride(), result.storage_offset())
                every.append(there.reshape(-1).clone())
                if self._way != "new":
                    there.zero_()  # what is left was written around the values
                    every.append(memory.count_nonzero().to(memory.dtype).reshape(1))
        return torch.cat(every)

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every case with its exact result, and name the layouts that differ."""
        rest = [] if self._way == "new" else [np.zeros(1)]
        pieces = [
            (name, np.concatenate([exact.reshape(-1), *rest]))
            for sources, exact in zip(self._sources, self._exact, strict=True)
            for name, _ in self._cases(sources[0])
        ]
        differs = differing(values_of(seen), np.concatenate([exact for _, exact in pieces]))
        at, names = 0, list[str]()
        for name, exact in pieces:
            if differs[at : at + exact.size].any() and name not in names:
                names.append(name)
            at += exact.size
        return mismatch_at(differs, where=", ".join(names))

    def _cases(self, source: Tensor) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield each layout of the tensor that is written, with that of the others, in words."""
        # Many elements take a busy CPU long.
        for layout in LAYOUTS if source.numel() < _MANY else ("strided",):
            yield layout, (layout, layout)
            if self._way != "new" and layout != "contiguous":
                yield f"{layout} with contiguous operands", (layout, "contiguous")

    def _worked(
        self, sources: list[Tensor], layouts: tuple[str, str], exact: Array, device: torch.device
    ) -> Tensor:
        written, others = layouts
        second, third = (laid_out(one, others, device) for one in sources[1:])
        if self._way == "out=":
            like = torch.ones(exact.shape, dtype=sources[0].dtype)
            first: Any = _IntoOut(
                laid_out(sources[0], others, device), laid_out(like, written, device)
            )
        else:
            first = laid_out(sources[0], written, device)
        work = self._operation.in_place if self._way == "in place" else self._operation.work
        assert work is not None
        return work(first, second, third)


def _storage_of(result: Tensor) -> Tensor:
    """Return all the memory of a result, on the CPU: copied as a whole, without its layout.

    A copy in that layout on the device would be part of the test.
    """
    memory = torch.empty(0, dtype=result.dtype, device=result.device)
    memory.set_(result.untyped_storage())
    return memory.to("cpu", copy=True)


def layout_parts() -> list[Part]:
    """Return every form of every operation in every dtype that has it."""
    return [
        LaidOut(operation, dtype, largest, way)
        for dtype, largest in DTYPES
        for operation in OPERATIONS
        if not (operation.is_for_floats and dtype.startswith("int"))
        for way, has_it in (
            ("new", True), ("in place", operation.in_place is not None), ("out=", operation.has_out)
        )
        if has_it
    ]  # fmt: skip


class Layouts(PartsStage):
    """Operations in every layout, then those with known answers; you can leave it out."""

    def __init__(self) -> None:
        super().__init__("layouts", lambda _bench: [*layout_parts(), *known_parts()])
