from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_studio.core.messages.check_messages import CheckFinding
from gpu_studio.core.units import format_count
from gpu_studio.engine.check import known_answers, layouts
from gpu_studio.engine.check.known_work import LAYOUTS, laid_out
from gpu_studio.engine.check.layouts import DTYPES, OPERATIONS, layout_works, operands
from tests.engine.check.stage_runs import CPU, TickingClock, follow, run_for

Broken = Callable[..., Tensor]


def found(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: Callable[[Broken], Broken]
) -> list[CheckFinding]:
    """Return what is found if PyTorch has another method: ``broken`` gets the real one."""
    method = f"{name}_"
    monkeypatch.setattr(torch.Tensor, method, broken(getattr(torch.Tensor, method)))
    monkeypatch.setattr(layouts, "OPERATIONS", [one for one in OPERATIONS if one.name == name])
    monkeypatch.setattr(layouts, "DTYPES", DTYPES[:2])
    monkeypatch.setattr(known_answers, "KNOWN", ())
    run = run_for("layouts", planned_s=0.1)
    follow(run)
    assert {one.kind for one in run.findings} <= {"disagreement"}
    return run.findings


def lost(where: Callable[[Tensor, tuple[Any, ...]], bool]) -> Callable[[Broken], Broken]:
    """Return a method that changes a copy of some tensors: the result is lost with the copy."""

    def broken(real: Broken) -> Broken:
        def method(a: Tensor, *others: Any, **options: Any) -> Tensor:
            if where(a, others):
                real(a.clone(), *others, **options)
                return a
            return real(a, *others, **options)

        return method

    return broken


def test_the_fault_of_the_document_is_found_only_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    findings = found(monkeypatch, "addcmul", lost(lambda a, _: not a.is_contiguous()))
    begins = [one.sentence.split(":")[0] for one in findings]
    assert (
        begins
        == [
            f"addcmul_ (in place) in float32, {layout}{others}"
            for layout in ("transposed", "strided", "sliced")
            for others in ("", " with contiguous operands")
        ][: len(begins)]
    )
    assert len(begins) == 5, "no more of a kind are told"
    assert all("each time" in one.sentence for one in findings)


@pytest.mark.parametrize(
    ("name", "where", "words"),
    [
        ("add", lambda a, b: a.is_contiguous() != b[0].is_contiguous(), "contiguous operands"),
        ("random", lambda a, _: not a.is_contiguous(), "strided"),
        ("mul", lambda a, _: a.dtype is torch.float16, "in float16, "),
        ("add", lambda a, _: a.numel() > 100_000 and not a.is_contiguous(), "add_ (in place)"),
    ],
)  # fmt: skip
def test_a_result_that_goes_into_a_copy_is_found(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    where: Callable[[Tensor, tuple[Any, ...]], bool],
    words: str,
) -> None:
    assert words in " ".join(one.sentence for one in found(monkeypatch, name, lost(where)))


def test_a_write_around_the_tensor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def over_the_end(real: Broken) -> Broken:
        def method(a: Tensor, *others: Any) -> Tensor:
            result = real(a, *others)
            memory = torch.empty(0, dtype=a.dtype).set_(a.untyped_storage())
            if len(memory) > a.numel():
                memory[-1] = 5.0
            return result

        return method

    sentences = " ".join(one.sentence for one in found(monkeypatch, "add", over_the_end))
    # Nothing but these two has memory around its values.
    assert ", strided" in sentences
    assert ", sliced" in sentences
    assert ", transposed" not in sentences


def test_every_form_is_compared_in_every_dtype_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layouts, "OPERATIONS", OPERATIONS)
    monkeypatch.setattr(known_answers, "KNOWN", ())
    run = run_for("layouts", planned_s=0.1, clock=TickingClock(0.001))
    _, is_whole = follow(run)
    assert is_whole
    assert run.findings == []
    titles = {work.title for work in layout_works()}
    assert {
        "addcmul_ (in place) in bfloat16, sliced", "matmul in float16, transposed",
        "cumsum (out=) in int64, strided with contiguous operands",
    } <= titles  # fmt: skip
    assert not [one for one in titles if one.startswith("addcmul") and "int64" in one]
    assert f"{format_count(len(titles))} kinds of work" in run.tested


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
