"""Does PyTorch compute correctly here? Every way a tensor may lie, and known answers.

The document "the bug that taught me more about PyTorch than years of using it" (Elana Pearl) is
about a result that only one kind of device got wrong, and only in one layout: `addcmul_` wrote its
result into a copy of a non-contiguous tensor. Only the same combination finds such a fault: the
operation in place or with ``out=``, on a tensor that is not contiguous. The other operands may be
contiguous, so that case is tested as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from gpu_studio.core.failure import FailureKind, first_line
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.detectors import Mismatch, mismatched_values
from gpu_studio.engine.check.formats import LAYOUTS, laid_out
from gpu_studio.engine.check.known_answers import known_parts
from gpu_studio.engine.check.parts import PartWork, counted
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import refuse_bfloat16_products, refuse_dtype
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName

    Work = Callable[[Any, Tensor, Tensor], Tensor]

_SIZES = ((17, 33), (5, 17, 33))
_LARGE_SIZE = (320, 330)  # kernels take another way for many elements


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on three tensors of one shape: two of whole numbers, one of powers of two.

    Attributes:
        name: PyTorch's name.
        work: returns a new tensor.
        in_place: changes the first tensor and returns it; None if there is no such form.
        has_out: whether PyTorch has it with ``out=``.
        is_for_floats: whether PyTorch has it for floating-point numbers only.
        is_product: whether it is a matrix product, which some cards lack in some dtypes.
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
DTYPES: tuple[tuple[torch.dtype, int], ...] = (
    (torch.float32, 8), (torch.float16, 3), (torch.bfloat16, 1), (torch.float64, 8),
    (torch.int64, 8),
)  # fmt: skip


def operands(
    generator: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype, largest: int
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


class Layouts:
    """Operations in every layout, then those with known answers; you can leave it out."""

    name: StageName = "layouts"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Go through all of it once; see `stage.Stage`."""
        compared = ComparedLayouts(bench)
        for doing in compared.run():
            if bench.is_over(has_tested_all=False):
                return False
            yield Step(doing=doing, tested=compared.words)
            bench.vitals()
        known = PartWork(bench, known_parts())
        for title in known.round():
            yield Step(doing=title, tested=_both(compared, known))
            bench.vitals()
        yield Step(doing="", tested=_both(compared, known))
        return known.rounds == 1 and not bench.is_stopped


def _both(compared: ComparedLayouts, known: PartWork) -> str:
    return "; ".join(filter(None, (compared.words, known.tested)))


@dataclass(slots=True)
class ComparedLayouts:
    """Every operation in every layout and dtype: new, in place and with ``out=``.

    Args:
        bench: gets the findings.
    """

    bench: StageBench
    _results: int = 0
    _pairs: int = 0
    _operations: set[str] = field(default_factory=set)
    _dtypes: set[torch.dtype] = field(default_factory=set)

    def run(self) -> Iterator[str]:
        """Go through all combinations once; yield each in words before it."""
        for dtype, largest in DTYPES:
            for operation in OPERATIONS:
                if dtype.is_floating_point or not operation.is_for_floats:
                    yield f"{operation.name} in {_name(dtype)}"
                    self._compare(operation, dtype, largest)

    @property
    def words(self) -> str:
        """What was compared, in words; empty if nothing was."""
        if not self._results:
            return ""
        return (
            f"{counted(len(self._operations), 'operation')} in "
            f"{counted(len(self._dtypes), 'dtype')} ({counted(self._pairs, 'pair')}), "
            f"{len(LAYOUTS)} layouts, {counted(self._results, 'result')}"
        )

    def _compare(self, operation: Operation, dtype: torch.dtype, largest: int) -> None:
        """Compare an operation with exact results, and count it if the device has it."""
        forms = [_Form(operation.name, operation.work, dtype, "new")]
        if operation.in_place is not None:
            forms.append(_Form(f"{operation.name}_", operation.in_place, dtype, "in place"))
        if operation.has_out:
            forms.append(_Form(operation.name, operation.work, dtype, "out="))
        try:
            refuse_dtype(self.bench.device, dtype)
            if operation.is_product and dtype is torch.bfloat16:
                refuse_bfloat16_products(self.bench.device)
            results = sum(_test(self.bench, form, operation.work, largest) for form in forms)
        except Exception as error:
            failure = failure_of(error)
            if failure.kind is not FailureKind.DTYPE_UNSUPPORTED:
                raise
            reason = first_line(failure.message, 200)
            self.bench.report(
                "could_not_run", "note", f"{operation.name} in {_name(dtype)}: {reason}"
            )
            return
        self._results += results
        self._pairs += 1
        self._operations.add(operation.name)
        self._dtypes.add(dtype)


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of an operation in one dtype."""

    name: str
    work: Work
    dtype: torch.dtype
    way: str

    def cases(self) -> Iterator[tuple[str, str]]:
        """Yield each layout of the tensor that is written, with that of the others."""
        for layout in LAYOUTS:
            yield layout, layout
            if self.way != "new" and layout != "contiguous":
                yield layout, "contiguous"


@dataclass(slots=True)
class _Difference:
    """Where a form differs, over all of its cases."""

    count: int = 0
    total: int = 0
    cases: list[tuple[str, str]] = field(default_factory=list)
    came_back: bool = True

    @property
    def tensors(self) -> str:
        """The layouts that differ, in words."""
        same = [layout for layout in LAYOUTS if (layout, layout) in self.cases]
        if len(same) == len(LAYOUTS):
            return "tensors of every layout"
        differing = {layout for layout, _ in self.cases}
        mixed = [layout for layout in LAYOUTS if layout in differing and layout not in same]
        parts = [f"{_listed(same)} tensors"] if same else []
        if mixed:
            parts.append(f"{_listed(mixed)} tensors and contiguous operands")
        return ", and with ".join(parts)


def _test(bench: StageBench, form: _Form, reference: Work, largest: int) -> int:
    """Compare one form in all layouts, and report a difference; return how many results it had."""
    difference, results = _Difference(), 0
    sizes = (*_SIZES, _LARGE_SIZE) if form.dtype is torch.float32 else _SIZES
    for shape in sizes:
        sources = operands(bench.generator, shape, form.dtype, largest)
        # The reference has no layout and no rounding: contiguous, float64, on the CPU.
        work = reference if form.way == "out=" else form.work
        exact = work(*(source.to(torch.float64, copy=True) for source in sources))
        for case in form.cases():
            results += 1
            found = _mismatch(bench, form, sources, case, exact, is_first=True)
            if found is not None:
                again = _mismatch(bench, form, sources, case, exact, is_first=False)
                difference.count += found.count
                difference.total += found.total
                difference.cases.append(case)
                difference.came_back &= again is not None
    if difference.count:
        _report(bench, form, difference)
    return results


def _mismatch(
    bench: StageBench,
    form: _Form,
    sources: list[Tensor],
    case: tuple[str, str],
    exact: Tensor,
    *,
    is_first: bool,
) -> Mismatch | None:
    """Return the wrong elements of a result, or those around it that must not change."""
    written, others = case
    is_out = form.way == "out="
    first, second, third = (
        laid_out(source, layout, bench.device)
        for source, layout in zip(
            sources, (others if is_out else written, others, others), strict=True
        )
    )
    if is_out:
        target = laid_out(torch.ones_like(exact, dtype=form.dtype), written, bench.device)
        result = form.work(_IntoOut(first, target), second, third)
    else:
        result = form.work(first, second, third)
    memory = _storage_of(result)
    there = memory.as_strided(result.shape, result.stride(), result.storage_offset())
    seen = there.clone(memory_format=torch.contiguous_format)
    before = sources[0] if is_first and seen.shape == sources[0].shape else None
    bench.plant.corrupt(seen, before)
    found = mismatched_values(seen, exact)
    if found is None and form.way != "new" and memory.numel() > seen.numel():
        there.zero_()  # what is left was written around the values
        return mismatched_values(memory, torch.zeros_like(memory))
    return found


def _storage_of(result: Tensor) -> Tensor:
    """Return all the memory of a result, on the CPU: copied as a whole, without its layout.

    A copy in that layout on the device would be part of the test.
    """
    memory = torch.empty(0, dtype=result.dtype, device=result.device)
    memory.set_(result.untyped_storage())
    return memory.to("cpu", copy=True)


def _report(bench: StageBench, form: _Form, difference: _Difference) -> None:
    how = _name(form.dtype) if form.way == "new" else f"{form.way}, {_name(form.dtype)}"
    each = "each time" if difference.came_back else "not each time"
    bench.report(
        "disagreement", "error",
        f"PyTorch and this {'card' if bench.is_card else 'CPU'} disagree on {form.name} ({how}) "
        f"with {difference.tensors}: {format_count(difference.count)} of "
        f"{format_count(difference.total)} elements, {each}.",
        count=difference.count, came_back=difference.came_back,
    )  # fmt: skip


def _listed(layouts: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(layouts[:-1]), layouts[-1])))


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
