"""Records of checks, in an invented time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from tests.fakes.check_answers import check_round

if TYPE_CHECKING:
    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.messages.check_messages import CheckFinding, PlantKind, StageName

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
    run = CheckRun(
        CheckPlan(device=device, minutes=minutes, plant=plant), STARTED_AT, program="GPU Studio 1.0"
    )
    while (request := run.next_request()) is not None:
        for event in check_round(request, findings=findings, **script):
            run.apply(event)  # type: ignore[arg-type]  # no pause
    return run.record()
