"""The compute stage: what it compares, and what it says of what it cannot compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.check import compute, products
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
    monkeypatch.setattr(compute, "refuse_bfloat16_products", refuse)
    bench = bench_for("compute")
    steps, is_whole = run(stage_of("compute"), bench)
    (note,) = bench.findings
    assert (note.kind, note.severity, note.count) == ("could_not_run", "note", 0)
    assert "Exact products in bfloat16" in note.sentence
    assert "No bfloat16 here." in note.sentence
    assert is_whole
    assert steps[-1].tested


def test_any_other_failure_ends_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_device: torch.device) -> None:
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(compute, "refuse_bfloat16_products", fail)
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

    monkeypatch.setattr(compute.Gather, "result", odd)
    bench = bench_for("compute")
    steps, is_whole = run(stage_of("compute"), bench)
    assert [(one.kind, one.severity) for one in bench.findings] == [("could_not_run", "doubt")]
    assert "Random gather" in bench.findings[0].sentence
    assert f"{len(few_parts(bench)) - 1} kinds of work" in steps[-1].tested
    assert is_whole


def test_work_that_never_repeats_is_a_doubt_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = compute.RepeatedWork.result, []

    def drifting(work: compute.RepeatedWork, bench: StageBench) -> torch.Tensor:
        calls.append(1)
        return real(work, bench) + len(calls)

    monkeypatch.setattr(compute.RepeatedWork, "result", drifting)
    bench = bench_for("compute")
    run(stage_of("compute"), bench)
    assert {(one.kind, one.severity) for one in bench.findings} == {("not_repeatable", "doubt")}
    assert bench.errors == 0


def test_a_result_that_is_wrong_once_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = compute.RepeatedWork.result, []

    def wrong_once(work: compute.RepeatedWork, bench: StageBench) -> torch.Tensor:
        if "float32" not in work.title:
            return real(work, bench)
        calls.append(1)
        return real(work, bench) + (len(calls) == 2)

    monkeypatch.setattr(compute.RepeatedWork, "result", wrong_once)
    bench = bench_for("compute")
    run(stage_of("compute"), bench)
    (finding,) = bench.findings
    assert (finding.kind, finding.severity) == ("unstable_result", "error")
    assert finding.came_back is False
    assert "0 of 3" in finding.sentence


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_result_that_changes_in_one_dtype_is_reported_with_it(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    real, calls = compute.RepeatedWork.result, []

    def wrong_later(work: compute.RepeatedWork, bench: StageBench) -> torch.Tensor:
        seen = real(work, bench)
        if work.title.endswith(dtype):
            calls.append(1)
            seen[0, 0] += len(calls) > 1
        return seen

    monkeypatch.setattr(compute.RepeatedWork, "result", wrong_later)
    bench = bench_for("compute", budget_s=0.1)
    run(stage_of("compute"), bench)
    (finding,) = bench.findings
    assert finding.kind == "unstable_result"
    assert dtype in finding.sentence


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
