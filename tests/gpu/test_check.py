import pytest

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.stages import PLANTED_FAULTS
from gpu_studio.core.messages.check_messages import STAGE_NAMES, PlantKind, RunCheck, StageName
from tests.gpu.conftest import Ask

pytestmark = pytest.mark.real_kernels
_RESULTS = [fault for fault in PLANTED_FAULTS if fault.kind in ("bit", "stuck", "swap", "drop")]


def checked(ask: Ask, card: str, *stages: StageName, plant: PlantKind | None = None) -> CheckRun:
    run = CheckRun(
        CheckPlan(device=card, minutes=1, stages=stages, plant=plant), "2026-11-29T12:00:00"
    )
    run.next_request()
    request = RunCheck(device=card, stages=stages, round_s=40.0, plant=plant)
    for event in ask(request):
        run.apply(event)
    return run


def test_a_sound_card_has_no_errors(ask: Ask, card: str) -> None:
    run = checked(ask, card, *STAGE_NAMES)
    assert run.errors == 0
    assert not [one for one in run.findings if one.severity == "error"]
    # The card compares its memory itself, and notices the wrong word that it is given.
    assert "blind" not in [one.kind for one in run.findings]


@pytest.mark.parametrize("stage", STAGE_NAMES)
@pytest.mark.parametrize("kind", [fault.kind for fault in _RESULTS])
def test_each_stage_finds_its_planted_faults(
    ask: Ask, card: str, stage: StageName, kind: PlantKind
) -> None:
    run = checked(ask, card, stage, plant=kind)
    assert run.errors > 0
    assert [one.verdict for one in run.outcomes()] == ["failed"]
