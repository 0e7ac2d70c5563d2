from fractions import Fraction

import numpy as np
import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import PlantKind
from gpu_studio.engine.check import compute, known_work
from gpu_studio.engine.check.known_work import differing, fitted, in_turns
from tests.engine.check.stage_runs import follow, run_for, works_named


def fail(*_: object, **__: object) -> torch.Tensor:
    raise RuntimeError("CUDA error: unspecified launch failure")


@pytest.mark.parametrize(
    ("place", "name", "error", "severity", "words"),
    [
        (known_work, "refuse_bfloat16_products",
         StudioError(FailureKind.DTYPE_UNSUPPORTED, "No bfloat16."), "note",
         "Exact products in bfloat16 and 1 more: No"),
        (torch, "_int_mm", RuntimeError("_int_mm_out_cuda not compiled for this card"), "note",
         "Products in int8: No int8 products here"),
        (torch.Tensor, "gather", ValueError("odd"), "doubt",
         "Random gather could not run: ValueError: odd"),
    ],
)  # fmt: skip
def test_work_that_cannot_run_is_told_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
    place: object,
    name: str,
    error: Exception,
    severity: str,
    words: str,
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(place, name, refuse)
    run = run_for("compute", planned_s=0.1)
    titles = ("Exact products in bf", "Convolution 1 × 1", "Products in int8", "Random gather")
    works = works_named(run, *titles)
    _, is_whole = follow(run, in_turns(run, works))
    (finding,) = run.findings
    assert (finding.kind, finding.severity, finding.count) == ("could_not_run", severity, 0)
    assert words in finding.sentence
    assert is_whole
    lacking = 2 if "bfloat16" in words else 1
    assert f"{len(works) - lacking} kinds of work" in run.tested, "only what was tested counts"


@pytest.mark.parametrize("plant", [None, "drop"])
def test_only_where_nothing_was_right_it_is_said(plant: PlantKind | None) -> None:
    run = run_for("compute", plant)
    if plant is None:  # a card that computes nothing
        run.plant.corrupt = lambda now, *_, **__: now.zero_()  # type: ignore[method-assign]
    follow(run)
    assert run.errors
    assert ("nothing_right" in {one.kind for one in run.findings}) == (plant is None)


def test_a_failure_of_the_card_ends_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_work, "refuse_dtype", fail)
    with pytest.raises(RuntimeError, match="launch failure"):
        follow(run_for("compute"))


def test_a_cudnn_that_does_not_start_is_a_note_and_skips_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = torch.nn.functional.conv2d

    def without_cudnn(*args: torch.Tensor, **options: int) -> torch.Tensor:
        if torch.backends.cudnn.enabled:
            raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")
        return real(*args, **options)

    monkeypatch.setattr(torch.nn.functional, "conv2d", without_cudnn)
    run = run_for("compute")
    _, is_whole = follow(run)
    (note,) = run.findings
    assert (note.kind, note.severity, note.count) == ("could_not_run", "note", 0)
    assert "CUDNN_STATUS_NOT_INITIALIZED" in note.sentence
    assert "without cuDNN" in note.sentence
    assert "12 kinds of work" in run.tested
    assert is_whole


@pytest.mark.parametrize(("wrong", "times"), [(1, "0 of 3 times"), (99, "each time")])
def test_a_wrong_number_is_told_with_its_work_and_whether_it_comes_back(
    monkeypatch: pytest.MonkeyPatch, wrong: int, times: str
) -> None:
    real, calls = torch.Tensor.gather, []

    def gather(*args: object) -> torch.Tensor:
        calls.append(1)
        result: torch.Tensor = real(*args)  # type: ignore[arg-type]
        result[1000] ^= int(len(calls) <= wrong)
        return result

    monkeypatch.setattr(torch.Tensor, "gather", gather)
    run = run_for("compute", planned_s=0.1)
    follow(run, in_turns(run, works_named(run, "Random gather")))
    (finding,) = run.findings
    assert (finding.kind, finding.count) == ("wrong_order", 1)
    assert "Random gather: wrong in 1 of " in finding.sentence
    assert times in finding.sentence


@pytest.mark.parametrize("dtype", ["float32"])
def test_multiply_add_is_rounded_once_in_the_answers(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Python's own division of whole numbers rounds once, to float64."""
    seen: list[list[np.ndarray]] = []
    monkeypatch.setattr(compute, "_bit_for_bit", lambda *rest: seen.extend(rest[2:4]))
    compute._multiply_add(dtype, run_for("compute"))
    operands, (fused, unfused) = seen
    rows = zip(*(one.tolist() for one in operands), strict=True)
    exact = [Fraction(a) + Fraction(b) * Fraction(c) for a, b, c in rows]
    for one, answer in zip(exact, fused, strict=True):
        assert abs(one - Fraction(float(answer))) * 2 <= abs(Fraction(float(np.spacing(answer))))
    assert (unfused != fused).any()


def test_rounding_to_bfloat16_takes_the_even_one_of_two() -> None:
    near = fitted(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38, np.nan, -0.0]), "bfloat16")
    assert near[:3].tolist() == [1.0, 1 + 2.0**-6, np.inf]
    assert np.isnan(near[3])
    assert np.signbit(near[4])


def test_nan_equals_nan_and_the_sign_of_zero_counts_where_it_is_asked_for() -> None:
    seen, exact = np.array([np.nan, 0.0, 1.0]), np.array([np.nan, -0.0, 1.5])
    assert differing(seen, exact).tolist() == [False, False, True]
    assert differing(seen, exact, np.full(3, 0.5)).tolist() == [False] * 3
    assert differing(seen, exact, has_signs=True).tolist() == [False, True, True]
    assert differing(seen[:2], exact).all(), "of another shape, all are wrong"
