"""Operations and layouts: what PyTorch computes on this device, in every way a tensor may lie.

The document "the bug that taught me more about PyTorch than years of using it" (Elana Pearl) is
about a result that only one kind of device got wrong, and only in one layout: `addcmul_` wrote its
result into a copy of a non-contiguous tensor. Only the same combination finds such a fault: the
operation in place, on a tensor that is not contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.units import format_count
from gpu_studio.engine.check.detectors import mismatched_values
from gpu_studio.engine.check.stage import StageBench, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName

    Work = Callable[[Tensor, Tensor, Tensor], Tensor]
_SIZES = ((17, 33), (96, 128))
_LARGEST = 8


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on three tensors of one shape: two of whole numbers, one of powers of two.

    Each result is exact in float32, so that every correct device gives the same one.
    """

    name: str
    work: Work
    in_place: Work | None = None


def _operation(name: str, work: Work, *, has_in_place: bool = True) -> Operation:
    if not has_in_place:
        return Operation(name, work)

    def in_place(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        # The same call, by the name of its form in place: add → add_.
        return work(_InPlace(a), b, c)  # type: ignore[arg-type]

    return Operation(name, work, in_place)


class _InPlace:
    """A tensor whose methods are those in place."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        method: Callable[..., Tensor] = getattr(self._tensor, f"{name}_")
        return method


OPERATIONS: tuple[Operation, ...] = (
    _operation("add", lambda a, b, c: a.add(b)),
    _operation("sub", lambda a, b, c: a.sub(b, alpha=2)),
    _operation("mul", lambda a, b, c: a.mul(b)),
    _operation("div", lambda a, b, c: a.div(c)),
    _operation("addcmul", lambda a, b, c: a.addcmul(b, c, value=0.5)),
    _operation("addcdiv", lambda a, b, c: a.addcdiv(b, c, value=2)),
    _operation("lerp", lambda a, b, c: a.lerp(b, 0.5)),
    _operation("neg", lambda a, b, c: a.neg()),
    _operation("abs", lambda a, b, c: a.abs()),
    _operation("sign", lambda a, b, c: a.sign()),
    _operation("clamp", lambda a, b, c: a.clamp(-3, 4)),
    _operation("square", lambda a, b, c: a.square()),
    _operation("reciprocal", lambda a, b, c: c.reciprocal(), has_in_place=False),
    _operation("relu", lambda a, b, c: a.relu()),
    _operation("masked_fill", lambda a, b, c: a.masked_fill(b > 0, 7.0)),
    _operation("tril", lambda a, b, c: a.tril()),
    _operation("cumsum", lambda a, b, c: a.cumsum(1)),
    _operation("where", lambda a, b, c: torch.where(b > 0, a, c), has_in_place=False),
    _operation("maximum", lambda a, b, c: torch.maximum(a, b), has_in_place=False),
    _operation("sum", lambda a, b, c: a.sum(0), has_in_place=False),
    _operation("flip", lambda a, b, c: a.flip(1), has_in_place=False),
    _operation("index_select", lambda a, b, c: a.index_select(0, _every_other(a)),
               has_in_place=False),
    _operation("matmul", lambda a, b, c: a.matmul(b.t()), has_in_place=False),
    Operation("copy", lambda a, b, c: a.clone(), lambda a, b, c: a.copy_(b)),
    Operation("fill", lambda a, b, c: torch.full_like(a, 3.0), lambda a, b, c: a.fill_(3.0)),
)  # fmt: skip


def _every_other(a: Tensor) -> Tensor:
    return torch.arange(0, a.shape[0], 2, device=a.device)


LAYOUTS = ("contiguous", "transposed", "strided", "sliced")


def laid_out(values: Tensor, layout: str, device: torch.device) -> Tensor:
    """Return the same values on a device, in memory that lies in another way.

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


class Layouts:
    """Every operation in every layout, in place and not."""

    name: StageName = "layouts"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Go through all combinations once; see `stage.Stage`."""
        done = cases = 0
        for operation in OPERATIONS:
            if bench.is_over(has_tested_all=False):
                break
            for layout in LAYOUTS:
                for shape in _SIZES:
                    cases += _test(bench, operation, layout, shape)
            done += 1
            bench.vitals()
            noun = "operation" if done == 1 else "operations"
            tested = f"{done} {noun} in {len(LAYOUTS)} layouts, {format_count(cases)} results"
            yield Step(doing=f"{operation.name} in {len(LAYOUTS)} layouts", tested=tested)
        return done == len(OPERATIONS)


def _test(bench: StageBench, operation: Operation, layout: str, shape: tuple[int, int]) -> int:
    """Compare an operation with the CPU, and report a difference; return how many results."""
    sources = _sources(bench, shape)
    forms = [("", operation.work)]
    if operation.in_place is not None:
        forms.append(("_", operation.in_place))
    for ending, work in forms:
        # The reference has no layout and no rounding: contiguous, float64, on the CPU.
        exact = work(*(source.double() for source in sources))
        seen = _seen(bench, work, sources, layout)
        bench.plant.corrupt(seen, sources[0] if seen.shape == sources[0].shape else None)
        found = mismatched_values(seen, exact)
        if found is None:
            continue
        again = _seen(bench, work, sources, layout)
        bench.plant.corrupt(again)
        came_back = mismatched_values(again, exact) is not None
        how = "in place, " if ending else ""
        each = "each time" if came_back else "not each time"
        bench.report(
            "disagreement", "error",
            f"PyTorch and this {'card' if bench.is_card else 'CPU'} disagree on "
            f"{operation.name}{ending} ({how}{layout} tensors): {format_count(found.count)} of "
            f"{format_count(found.total)} elements, {each}.",
            count=found.count, came_back=came_back,
        )  # fmt: skip
    return len(forms)


def _seen(bench: StageBench, work: Work, sources: list[Tensor], layout: str) -> Tensor:
    """Return an operation's result from the device, contiguous on the CPU."""
    operands = [laid_out(source, layout, bench.device) for source in sources]
    result = work(*operands)
    # To the CPU with its strides: a strided copy on the device would be part of the test.
    return _on_cpu(result)


def _on_cpu(result: Tensor) -> Tensor:
    """Return the values of a tensor, read through its whole storage."""
    memory = torch.empty(0, dtype=result.dtype, device=result.device)
    memory.set_(result.untyped_storage())
    return (
        memory.cpu()
        .as_strided(result.shape, result.stride(), result.storage_offset())
        .contiguous()
        .clone()
    )


def _sources(bench: StageBench, shape: tuple[int, int]) -> list[Tensor]:
    def whole() -> Tensor:
        return torch.randint(-_LARGEST, _LARGEST + 1, shape, generator=bench.generator).float()

    power = torch.randint(-2, 3, shape, generator=bench.generator).float()
    return [whole(), whole(), torch.pow(2.0, power)]
