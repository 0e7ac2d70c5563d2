"""Operations and layouts: what PyTorch computes on this device, in every way a tensor may lie.

The document "the bug that taught me more about PyTorch than years of using it" (Elana Pearl) is
about a result that only one kind of device got wrong, and only in one layout: `addcmul_` wrote its
result into a copy of a non-contiguous tensor. Only the same combination finds such a fault: the
operation in place, on a tensor that is not contiguous. The other operands may be contiguous, so
that case is tested as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.failure import FailureKind, first_line
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.detectors import Mismatch, mismatched_values
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import refuse_bfloat16_products, refuse_dtype
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName

    Work = Callable[[Tensor, Tensor, Tensor], Tensor]

_SIZES = ((17, 33), (96, 128))
LAYOUTS = ("contiguous", "transposed", "strided", "sliced")


def laid_out(values: Tensor, layout: str, device: torch.device) -> Tensor:
    """Return the same values on a device, in memory that lies in another way.

    The memory between and around the values is zero.

    Args:
        values: a contiguous tensor of two dimensions, on the CPU.
        layout: one of `LAYOUTS`.
        device: the device.
    """
    rows, columns = values.shape
    if layout == "contiguous":
        return values.to(device, copy=True)
    if layout == "transposed":
        return values.t().contiguous().to(device).t()
    if layout == "strided":
        # Copied as a whole: the test of a layout must not depend on a copy in that layout.
        wide = torch.zeros(rows, 2 * columns, dtype=values.dtype)
        wide[:, ::2] = values
        return wide.to(device)[:, ::2]
    large = torch.zeros(rows + 4, columns + 5, dtype=values.dtype)
    large[3 : 3 + rows, 2 : 2 + columns] = values
    return large.to(device)[3 : 3 + rows, 2 : 2 + columns]


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
    (torch.int32, 8), (torch.int64, 8), (torch.int16, 8),
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


class Layouts:
    """Every operation in every layout and dtype, in place and not."""

    name: StageName = "layouts"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Go through all combinations once; see `stage.Stage`."""
        ran = _Ran()
        for dtype, largest in DTYPES:
            for operation in OPERATIONS:
                if operation.is_for_floats and not dtype.is_floating_point:
                    continue
                if bench.is_over(has_tested_all=False):
                    return False
                yield Step(doing=f"{operation.name} in {_name(dtype)}", tested=ran.words)
                ran.add(operation, dtype, _compared(bench, operation, dtype, largest))
                bench.vitals()
        yield Step(doing="", tested=ran.words)
        return not bench.is_stopped


@dataclass(slots=True)
class _Ran:
    """What was compared: pairs of an operation and a dtype, and layouts."""

    results: int = 0
    pairs: int = 0
    operations: set[str] = field(default_factory=set)
    layouts: set[str] = field(default_factory=set)
    dtypes: set[torch.dtype] = field(default_factory=set)

    def add(self, operation: Operation, dtype: torch.dtype, cases: Sequence[str]) -> None:
        """Count the layouts of an operation's results; none if the device lacks it."""
        if not cases:
            return
        self.results += len(cases)
        self.pairs += 1
        self.operations.add(operation.name)
        self.dtypes.add(dtype)
        self.layouts.update(cases)

    @property
    def words(self) -> str:
        """What was compared, in words; empty if nothing was."""
        if not self.results:
            return ""
        operations = _counted(len(self.operations), "operation")
        return (
            f"{operations} in {_counted(len(self.dtypes), 'dtype')} "
            f"({_counted(self.pairs, 'pair')}), {_counted(len(self.layouts), 'layout')}, "
            f"{_counted(self.results, 'result')}"
        )


def _counted(count: int, noun: str) -> str:
    return f"{format_count(count)} {noun}{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of an operation in one dtype."""

    name: str
    work: Work
    is_in_place: bool
    dtype: torch.dtype

    def cases(self) -> Iterator[tuple[str, str]]:
        """Yield each layout of the first operand, with that of the others."""
        for layout in LAYOUTS:
            yield layout, layout
            if self.is_in_place and layout != "contiguous":
                yield layout, "contiguous"


@dataclass(slots=True)
class _Difference:
    """Where a form differs, over all of its cases."""

    count: int = 0
    total: int = 0
    cases: list[tuple[str, str]] = field(default_factory=list)
    came_back: bool = True

    def add(self, found: Mismatch, case: tuple[str, str], *, came_back: bool) -> None:
        """Count a case that differs."""
        self.count += found.count
        self.total += found.total
        self.cases.append(case)
        self.came_back &= came_back

    @property
    def tensors(self) -> str:
        """The layouts that differ, in words."""
        same = [layout for layout in LAYOUTS if (layout, layout) in self.cases]
        if len(same) == len(LAYOUTS):
            return "tensors of every layout"
        mixed = [layout for layout, _ in self.cases if layout not in same]
        parts = [f"{_listed(same)} tensors"] if same else []
        if mixed:
            in_order = [layout for layout in LAYOUTS if layout in mixed]
            parts.append(f"{_listed(in_order)} tensors and contiguous operands")
        return ", and with ".join(parts)


def _compared(
    bench: StageBench, operation: Operation, dtype: torch.dtype, largest: int
) -> list[str]:
    """Compare an operation with exact results; return the layout of each, none without any."""
    forms = [_Form(operation.name, operation.work, False, dtype)]
    if operation.in_place is not None:
        forms.append(_Form(f"{operation.name}_", operation.in_place, True, dtype))
    try:
        refuse_dtype(bench.device, dtype)
        if operation.is_product and dtype is torch.bfloat16:
            refuse_bfloat16_products(bench.device)
        return [layout for form in forms for layout in _test(bench, form, largest)]
    except Exception as error:
        failure = failure_of(error)
        if failure.kind is not FailureKind.DTYPE_UNSUPPORTED:
            raise
        reason = first_line(failure.message, 200)
        bench.report("could_not_run", "note", f"{operation.name} in {_name(dtype)}: {reason}")
        return []


def _test(bench: StageBench, form: _Form, largest: int) -> list[str]:
    """Compare one form in all layouts, and report a difference; return the layouts."""
    difference, layouts = _Difference(), list[str]()
    for shape in _SIZES:
        sources = operands(bench.generator, shape, form.dtype, largest)
        # The reference has no layout and no rounding: contiguous, float64, on the CPU.
        exact = form.work(*(source.to(torch.float64, copy=True) for source in sources))
        for case in form.cases():
            layouts.append(case[0])
            found = _mismatch(bench, form, sources, case, exact, is_first=True)
            if found is not None:
                again = _mismatch(bench, form, sources, case, exact, is_first=False)
                difference.add(found, case, came_back=again is not None)
    if difference.count:
        _report(bench, form, difference)
    return layouts


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
    first, others = case
    layouts = (first, others, others)
    placed = [
        laid_out(source, layout, bench.device)
        for source, layout in zip(sources, layouts, strict=True)
    ]
    result = form.work(*placed)
    memory = _storage_of(result)
    there = memory.as_strided(result.shape, result.stride(), result.storage_offset())
    seen = there.clone(memory_format=torch.contiguous_format)
    before = sources[0] if is_first and seen.shape == sources[0].shape else None
    bench.plant.corrupt(seen, before)
    found = mismatched_values(seen, exact)
    if found is None and form.is_in_place and memory.numel() > seen.numel():
        there.zero_()  # what is left was written around the values
        return mismatched_values(memory, torch.zeros_like(memory))
    return found


def _storage_of(result: Tensor) -> Tensor:
    """Return all the memory of a tensor, on the CPU.

    It is copied whole: a strided copy on the device would be part of the test.
    """
    memory = torch.empty(0, dtype=result.dtype, device=result.device)
    memory.set_(result.untyped_storage())
    return memory.to("cpu", copy=True)


def _report(bench: StageBench, form: _Form, difference: _Difference) -> None:
    how = f"in place, {_name(form.dtype)}" if form.is_in_place else _name(form.dtype)
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
