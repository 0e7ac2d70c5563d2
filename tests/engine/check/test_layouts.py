"""Operations and layouts: faults like the one of the document, each found only where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.check import layouts
from gpu_studio.engine.check.formats import LAYOUTS, laid_out, wide
from gpu_studio.engine.check.known_answers import KNOWN, Operands
from gpu_studio.engine.check.layouts import (
    DTYPES,
    OPERATIONS,
    Layouts,
    Operation,
    layout_parts,
    operands,
)
from tests.engine.check.benches import CPU, TickingClock, bench_for, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import CheckFinding
    from gpu_studio.engine.check.layouts import Work


def named(name: str) -> Operation:
    return next(one for one in OPERATIONS if one.name == name)


def found(
    monkeypatch: pytest.MonkeyPatch, name: str, in_place: Work, *dtypes: str
) -> list[CheckFinding]:
    """Return what is found if one operation has this form in place, with these dtypes."""
    usual = named(name)
    broken = replace(usual, in_place=in_place)
    chosen = [one for one in DTYPES if one[0] in (dtypes or ("float32",))]
    monkeypatch.setattr(layouts, "OPERATIONS", (broken,))
    monkeypatch.setattr(layouts, "DTYPES", chosen)
    bench = bench_for("layouts", budget_s=0.1)
    run(Layouts(), bench)
    assert {one.kind for one in bench.findings} <= {"disagreement"}
    return bench.findings


def test_the_fault_of_the_document_is_found_only_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def into_a_copy(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        if a.is_contiguous():
            return a.addcmul_(b, c, value=0.5)
        a.contiguous().addcmul_(b, c, value=0.5)  # the result is lost with the copy
        return a

    (finding,) = found(monkeypatch, "addcmul", into_a_copy)
    assert "addcmul_ (in place) in float32: wrong in " in finding.sentence
    for layout in ("transposed", "strided", "sliced"):
        assert f"{layout}, {layout} with contiguous operands" in finding.sentence
    assert "(contiguous" not in finding.sentence
    assert finding.came_back
    assert finding.count > 1000


def test_a_fault_with_contiguous_operands_only_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_mixed(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return a if a.is_contiguous() != b.is_contiguous() else a.add_(b)

    (finding,) = found(monkeypatch, "add", only_mixed)
    assert "contiguous operands" in finding.sentence


def test_random_numbers_that_go_into_a_copy_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def into_a_copy(a: Tensor, _b: Tensor, _c: Tensor) -> Tensor:
        a.zero_()
        return a.random_(1, 9).clamp_(0, 1) if a.is_contiguous() else a

    (finding,) = found(monkeypatch, "random", into_a_copy)
    assert "random_" in finding.sentence
    assert "strided" in finding.sentence


def test_a_fault_in_one_dtype_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_halves(a: Tensor, b: Tensor, _c: Tensor) -> Tensor:
        return a if a.dtype is torch.float16 else a.mul_(b)

    every = [dtype for dtype, _ in DTYPES]
    (finding,) = found(monkeypatch, "mul", only_halves, *every)
    assert "float16" in finding.sentence
    assert "contiguous" in finding.sentence


def test_a_write_around_the_tensor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def over_the_end(a: Tensor, b: Tensor, _c: Tensor) -> Tensor:
        result = a.add_(b)
        memory = torch.empty(0, dtype=a.dtype).set_(a.untyped_storage())
        if len(memory) > a.numel():
            memory[-1] = 5.0
        return result

    (finding,) = found(monkeypatch, "add", over_the_end)
    # Nothing but these two has memory around its values.
    assert "strided" in finding.sentence
    assert "sliced" in finding.sentence
    assert "transposed" not in finding.sentence


def test_a_difference_that_does_not_come_back_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def once(a: Tensor, b: Tensor, _c: Tensor) -> Tensor:
        calls.append(1)
        return a if len(calls) == 5 else a.add_(b)  # the first three make the exact results

    (finding,) = found(monkeypatch, "add", once)
    assert finding.came_back is False
    assert "0 of 3 times" in finding.sentence


def test_every_form_is_compared_in_every_dtype_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layouts, "OPERATIONS", OPERATIONS)
    monkeypatch.setattr(layouts, "known_parts", list)
    bench = bench_for("layouts", budget_s=0.1, clock=TickingClock(0.001))
    steps, is_whole = run(Layouts(), bench)
    assert is_whole
    assert bench.findings == []
    doing = {step.doing for step in steps}
    assert {
        "addcmul_ (in place) in bfloat16", "matmul in float16", "cumsum (out=) in int64",
    } <= doing  # fmt: skip
    assert not [one for one in doing if one.startswith("addcmul") and "int64" in one]
    assert f"{len(layout_parts())} kinds of work" in steps[-1].tested


def test_a_dtype_that_the_card_lacks_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_device: torch.device) -> None:
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, "No bfloat16 here.")

    monkeypatch.setattr(layouts, "refuse_bfloat16_products", refuse)
    monkeypatch.setattr(layouts, "OPERATIONS", (named("matmul"),))
    bench = bench_for("layouts")
    _, is_whole = run(Layouts(), bench)
    note = bench.findings[0]
    assert (note.kind, note.severity) == ("could_not_run", "note")
    assert "matmul in bfloat16" in note.sentence
    assert is_whole


@pytest.mark.parametrize(("dtype", "largest"), DTYPES)
def test_the_largest_sum_of_products_is_exact_in_its_dtype(dtype: str, largest: int) -> None:
    """Its size alone says whether every partial sum before it was exact."""
    kind: torch.dtype = getattr(torch, dtype)
    whole, _, powers = operands(torch.Generator().manual_seed(0), (17, 33), kind, largest)
    assert whole.dtype == powers.dtype == kind
    assert whole.abs().max() == largest
    # A whole number is exact up to 2^(bits of the mantissa + 1).
    exact_to = 2 / torch.finfo(kind).eps if kind.is_floating_point else torch.iinfo(kind).max
    assert 33 * largest**2 <= exact_to


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_changes_the_memory_and_no_value(layout: str) -> None:
    values = torch.arange(12.0).view(3, 4)
    laid = laid_out(values, layout, CPU)
    assert torch.equal(laid, values)
    assert laid.is_contiguous() == (layout == "contiguous")
    laid.zero_()
    assert values.sum() == 66  # a copy, not a view


def test_a_fault_of_the_form_with_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = torch.mul

    def into_a_copy(*operands: Tensor, out: Tensor) -> Tensor:
        if out.is_contiguous():
            return real(*operands, out=out)
        real(*operands)  # the result is lost
        return out

    monkeypatch.setattr(torch, "mul", into_a_copy)
    (finding,) = found(monkeypatch, "mul", lambda a, b, c: a.mul_(b))
    assert "mul (out=) in float32" in finding.sentence


@pytest.mark.parametrize("is_hit", [lambda a: a.dim() == 3, lambda a: a.numel() > 100_000])
def test_a_fault_in_three_dimensions_or_in_large_tensors_is_found(
    monkeypatch: pytest.MonkeyPatch, is_hit: Callable[[Tensor], bool]
) -> None:
    def broken(a: Tensor, b: Tensor, _c: Tensor) -> Tensor:
        return a if is_hit(a) and not a.is_contiguous() else a.add_(b)

    (finding,) = found(monkeypatch, "add", broken)
    assert "add_ (in place) in float32" in finding.sentence


def test_no_known_answer_has_a_trivial_operand() -> None:
    """Each result has many values, and so has each operand."""
    numbers = np.random.default_rng(3)
    for known in KNOWN:
        for dtype in known.dtypes:
            operands_ = known.make(Operands(numbers, (64, 96), dtype))
            for one in operands_:
                assert len(np.unique(one)) > 2 - (dtype == "bfloat16"), (known.name, dtype)
            with np.errstate(all="ignore"):
                answer = np.asarray(known.answer(*(wide(one) for one in operands_)))
            assert len(np.unique(answer)) > 1, (known.name, dtype)


def test_there_are_about_sixty_known_answers() -> None:
    assert 55 <= len(KNOWN) <= 65
    assert len({known.name for known in KNOWN}) >= 55
