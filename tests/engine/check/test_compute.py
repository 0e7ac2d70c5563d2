"""The compute stage: what it compares, and what it says of what it cannot compare."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.check import arithmetic, compute, parts, products
from gpu_studio.engine.check.compute import Compute, IndexedAccess, every_part
from gpu_studio.engine.check.formats import FORMATS, format_of, numbers_of, rounded
from gpu_studio.engine.check.products import EXACT
from tests.engine.check.benches import bench_for, few_parts, run, stage_of

if TYPE_CHECKING:
    from gpu_studio.engine.check.stage import StageBench


def test_a_dtype_that_the_card_lacks_is_a_note_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_device: torch.device) -> None:
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, "No bfloat16 here.")

    monkeypatch.setattr(products, "refuse_bfloat16_products", refuse)
    bench = bench_for("compute")
    steps, is_whole = run(stage_of("compute"), bench)
    (note,) = bench.findings
    assert (note.kind, note.severity, note.count) == ("could_not_run", "note", 0)
    assert "Exact products in bfloat16" in note.sentence
    assert "No bfloat16 here." in note.sentence
    assert is_whole
    assert "10 kinds of work" in steps[-1].tested, "only what was tested counts"


def test_int8_products_that_the_card_lacks_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("_int_mm_out_cuda not compiled for this card")

    monkeypatch.setattr(torch, "_int_mm", refuse)
    bench = bench_for("compute")
    run(Compute(lambda _bench: [products.Int8Product()]), bench)
    assert [(one.kind, one.severity) for one in bench.findings] == [("could_not_run", "note")]
    assert "int8" in bench.findings[0].sentence


def test_any_other_failure_ends_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_device: torch.device, _dtype: torch.dtype) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(parts, "refuse_dtype", fail)
    with pytest.raises(RuntimeError, match="launch failure"):
        run(stage_of("compute"), bench_for("compute"))


def test_a_cudnn_that_does_not_start_is_a_note_and_skips_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = torch.nn.functional.conv2d

    def without_cudnn(*args: torch.Tensor, **options: int) -> torch.Tensor:
        if torch.backends.cudnn.enabled:
            raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")
        return real(*args, **options)

    monkeypatch.setattr(torch.nn.functional, "conv2d", without_cudnn)
    bench = bench_for("compute")
    steps, is_whole = run(stage_of("compute"), bench)
    (note,) = bench.findings
    assert (note.kind, note.severity, note.count) == ("could_not_run", "note", 0)
    assert "CUDNN_STATUS_NOT_INITIALIZED" in note.sentence
    assert "without cuDNN" in note.sentence
    assert f"{len(few_parts(bench))} kinds of work" in steps[-1].tested
    assert is_whole


def test_work_that_raises_is_a_doubt_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(*_: object) -> torch.Tensor:
        raise ValueError("odd")

    monkeypatch.setattr(IndexedAccess, "result", odd)
    bench = bench_for("compute")
    steps, is_whole = run(stage_of("compute"), bench)
    assert {(one.kind, one.severity) for one in bench.findings} == {("could_not_run", "doubt")}
    assert "Random gather" in bench.findings[0].sentence
    assert f"{len(few_parts(bench)) - 2} kinds of work" in steps[-1].tested
    assert is_whole


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_wrong_whole_number_is_reported_with_its_dtype(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    real = compute.WholeNumbers.result

    def wrong(work: compute.WholeNumbers, bench: StageBench) -> torch.Tensor:
        seen = real(work, bench)
        seen[1000] ^= int(work.title.endswith(dtype))
        return seen

    monkeypatch.setattr(compute.WholeNumbers, "result", wrong)
    bench = bench_for("compute", budget_s=0.1)
    run(stage_of("compute"), bench)
    (finding,) = bench.findings
    assert (finding.kind, finding.count) == ("wrong_result", 1)
    assert dtype in finding.sentence
    assert finding.came_back


@pytest.mark.parametrize(("dtype", "inner", "largest"), EXACT)
def test_the_products_are_exact_in_their_dtype(dtype: str, inner: int, largest: int) -> None:
    """The worst sum of all: its size alone says whether every sum before it was exact."""
    is_complex = dtype.startswith("complex")
    total = inner * (2 * (largest // 2) ** 2 if is_complex else largest**2)
    limit = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8, "float64": 2**53,
             "complex64": 2**24, "complex128": 2**53}[dtype]  # fmt: skip
    assert total <= limit
    assert largest < 2**10 or dtype in ("float64", "complex128")


@pytest.mark.parametrize("form", FORMATS[:2], ids=lambda form: form.name)
def test_multiply_add_is_rounded_once_in_the_answers(form: arithmetic.FloatFormat) -> None:
    """Python's own division of whole numbers rounds once, to float64."""
    bits = arithmetic._near_cancelling(form, np.random.default_rng(1))
    a, b, c = (numbers_of(one, form).astype(float) for one in bits)
    fused = numbers_of(arithmetic._fused_or_not(form, *(numbers_of(one, form) for one in bits))[0],
                       form).astype(float)  # fmt: skip
    exact = [Fraction(x) + Fraction(y) * Fraction(z) for x, y, z in zip(a, b, c, strict=True)]
    for one, answer in zip(exact, fused, strict=True):
        ulp = Fraction(float(np.spacing(np.array(answer, dtype=form.name))))
        assert abs(one - Fraction(float(answer))) * 2 <= abs(ulp)
    unfused = arithmetic._fused_or_not(form, *(numbers_of(one, form) for one in bits))[1]
    assert (numbers_of(unfused, form) != fused.astype(form.name)).any()


def test_rounding_to_bfloat16_takes_the_even_one_of_two() -> None:
    form = format_of("bfloat16")
    values = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, np.nan, -0.0], dtype=np.float32)
    near = numbers_of(rounded(values, form), form)
    assert near[:3].tolist() == [1.0, 1 + 2.0**-6, np.inf]
    assert np.isnan(near[3])
    assert np.signbit(near[4])


def test_a_cpu_whose_numpy_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(arithmetic._IN_NUMPY, "mul", lambda a, b: a * b * (1 + 2.0**-20))
    bench = bench_for("compute", budget_s=0.1)
    part = next(one for one in every_part(bench) if one.title == "IEEE × in float32")
    part.prepare(bench)
    assert "the CPU itself is wrong" in bench.findings[0].sentence
