"""Records of checks, in an invented time."""

from typing import Any

from gpu_studio.core.check.check_record import CheckRecord
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.messages.check_messages import CheckFinding, PlantKind, StageName
from tests.fakes.check_answers import check_round

STARTED_AT = "2026-11-22T14:40:00+01:00"


def check_record(
    findings: dict[StageName, tuple[CheckFinding, ...]] | None = None,
    *,
    device: str = "cuda:0",
    minutes: int = 6,
    plant: PlantKind | None = None,
    **script: Any,
) -> CheckRecord:
    """Return the record of a check whose engine followed the script of `check_round`."""
    plan = CheckPlan(device=device, minutes=minutes, plant=plant)
    run = CheckRun(plan, STARTED_AT, program="GPU Studio 1.0")
    while run_round(run, findings=findings, **script):
        pass
    return run.record()


def run_round(run: CheckRun, **script: Any) -> bool:
    """Let a check follow the script of `check_round`; return whether it asked for a round."""
    request = run.next_request()
    for event in check_round(request, **script) if request is not None else ():
        run.apply(event)  # type: ignore[arg-type]  # no pause
    return request is not None


def check_until(
    stage: StageName, *, device: str = "cuda:0", minutes: int = 480, **plan: Any
) -> CheckRun:
    """Return a check whose engine ended in the middle of a stage of the first round."""
    run = CheckRun(CheckPlan(device=device, minutes=minutes, **plan), STARTED_AT)
    run_round(run, end_in=stage)
    return run
