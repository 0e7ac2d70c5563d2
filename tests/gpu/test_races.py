import pytest
import torch

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, WorkloadDescription
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import LEARN, PICTURES
from gpu_studio.core.race.verdict import judge
from gpu_studio.engine.device import resolve
from gpu_studio.engine.workloads.case import Case, dtype_eps, product_dtype
from gpu_studio.engine.workloads.learn import (
    LearnDrawing,
    photo_of,
    reference_curve,
    sharpness_curve,
    tolerance_db,
)
from tests.gpu.conftest import Ask

pytestmark = pytest.mark.real_kernels


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_a_race_is_verified_and_reaches_its_line(
    ask: Ask, card: str, picture: WorkloadDescription
) -> None:
    for dtype in picture.dtypes:
        (request,) = race_requests(
            picture, picture.race.default_size, [Contestant(device=card, dtype=dtype)], 120.0
        )
        result = ask(request)[-1]
        if isinstance(result, RunFailed):  # bfloat16 products on an old card
            assert result.failure.kind is FailureKind.DTYPE_UNSUPPORTED, result
            continue
        assert isinstance(result, RunFinished)
        assert result.verified, (dtype, result.verification)
        assert result.outcome.reached, (dtype, result.outcome)
        assert set(result.details.parts_s) == {"launch", "compute"}


def test_a_card_learns_over_steps_like_float64(card: str) -> None:
    case = Case(device=resolve(card), size=64)
    photo = photo_of(Case(device=torch.device("cpu"), size=64))
    found = sharpness_curve(LearnDrawing(case, photo), 100)
    expected = reference_curve(case, photo, 100)
    allowed = tolerance_db(dtype_eps(product_dtype(case)), 100)
    assert max(abs(a - b) for a, b in zip(found, expected, strict=True)) <= allowed
    torch.cuda.synchronize(case.device)


def test_a_race_of_the_cpu_and_a_card_ends_with_a_sentence(ask: Ask, card: str) -> None:
    runs = []
    for request in race_requests(
        LEARN, 64, [Contestant(device="cpu"), Contestant(device=card)], 60.0
    ):
        run = Run(request)
        for event in ask(request):
            run.apply(event)
        runs.append(run)
    finished = judge(LEARN, runs).finished
    assert all(one.verified for one in finished.contestants)
    assert finished.sentence
