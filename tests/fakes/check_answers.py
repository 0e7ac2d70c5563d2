"""What an engine says of a check, in an invented time."""

from collections.abc import Iterator
from typing import Any

import msgspec

from gpu_studio.core.check.check_record import CheckRecord
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.stages import stage_budget_s
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.messages.check_messages import (
    CheckedDevice,
    CheckFinding,
    CheckFindingMade,
    CheckProgressed,
    CheckRoundFinished,
    CheckStageBegan,
    CheckStageFinished,
    CheckStarted,
    CheckVerdict,
    CheckVitalsRead,
    MemoryCoverage,
    PlantKind,
    RunCheck,
    StageName,
)
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.message import Event
from gpu_studio.core.telemetry import ClockReason, Telemetry
from tests.fakes.descriptions import described_for
from tests.fakes.scripted_engine import Engines, Pause

MIB = 1 << 20
COVERAGE = MemoryCoverage(
    tested_bytes=1400 * MIB, free_bytes=1900 * MIB, total_bytes=1996 * MIB,
    reserve_bytes=400 * MIB,
)  # fmt: skip
GT_1030 = CheckedDevice(
    address="cuda:0",
    name="NVIDIA GeForce GT 1030",
    silicon="GP108 (1d01)",
    vbios="86.08.0C.00.1D",
    driver_version="580.95.05",
    torch_version="2.7.1+cu126",
    compute_capability="6.1",
    memory_total_bytes=1996 * MIB,
    slowdown_c=94.0,
    base_clock_mhz=1227.0,
    power_limit_w=30.0,
    ecc="The card reports no ECC memory. GeForce cards usually have none.",
)
THIS_CPU = CheckedDevice(
    address="cpu",
    name="AMD Ryzen 7 5700G",
    torch_version="2.13.0+cpu",
    memory_total_bytes=16 << 30,
    ecc="The program cannot read whether this PC's RAM has ECC.",
)
_TESTED: dict[StageName, str] = {
    "load": "210 products, 12 s at 63 °C; 20 steps of 20 to 100 % load",
    "compute": "480 results, all elements",
    "layouts": "20 operations, 4 layouts",
    "memory": "1.37 GiB of 1.86 GiB free, 3 passes",
    "link": "40 copies, 10.0 GiB",
}


def check_round(
    request: RunCheck,
    *,
    findings: dict[StageName, tuple[CheckFinding, ...]] | None = None,
    pause_in: StageName | None = None,
    stop_in: StageName | None = None,
    end_in: StageName | None = None,
    **changes: Any,
) -> Iterator[Event | Pause]:
    """Yield a round, 20 readings a stage.

    Args:
        request: the round.
        findings: made in the middle of these stages.
        pause_in: the stage in whose middle the engine waits.
        stop_in: the stage that the user stops in its middle.
        end_in: the stage after whose middle nothing follows, as if the engine had ended.
        changes: fields of the end of each stage.
    """
    found = findings or {}
    device = THIS_CPU if request.device == "cpu" else GT_1030
    yield CheckStarted(device=device, fingerprint="0123456789abcdef")
    begun_s = 0.0
    for stage in request.stages:
        planned_s = stage_budget_s(stage, request.round_s)
        yield CheckStageBegan(stage=stage, planned_s=planned_s)
        errors = 0
        for step in range(20):
            share, now_s = step / 20, begun_s + planned_s * step / 20
            if step == 10:
                for finding in found.get(stage, ()):
                    errors += finding.count * (finding.severity == "error")
                    yield CheckFindingMade(finding=finding)
                if pause_in == stage:
                    yield Pause()
                if end_in == stage:
                    return
            if device.address != "cpu":
                yield CheckVitalsRead(elapsed_s=now_s, vitals=vitals_at(now_s))
            yield CheckProgressed(
                stage=stage, fraction=share, doing=f"Step {step + 1} of 20",
                tested=f"{step} steps", errors=errors, elapsed_s=now_s,
                coverage=COVERAGE if stage == "memory" and step else None,
            )  # fmt: skip
            if stop_in == stage and step == 10:
                yield stage_finished(request, stage, "partial", errors, planned_s / 2)
                yield CheckRoundFinished(is_stopped=True)
                return
        verdict = _verdict(found.get(stage, ()))
        end = stage_finished(request, stage, verdict, errors, planned_s)
        yield msgspec.structs.replace(end, **changes)
        begun_s += planned_s
    yield CheckRoundFinished()


def stage_finished(
    request: RunCheck, stage: StageName, verdict: CheckVerdict, errors: int, seconds: float
) -> CheckStageFinished:
    return CheckStageFinished(
        stage=stage, verdict=verdict,
        tested=_TESTED[stage], errors=errors, seconds=seconds,
        coverage=COVERAGE if stage == "memory" else None,
    )  # fmt: skip


def vitals_at(elapsed_s: float) -> Telemetry:
    """Return the sensors of a card that warms up to 63 °C in a minute."""
    warm = min(elapsed_s / 60.0, 1.0)
    return Telemetry(
        temperature_c=38.0 + 25.0 * warm, sm_clock_mhz=1506.0 - 38.0 * warm,
        memory_clock_mhz=3004.0, power_w=12.0 + 9.0 * warm, clock_event_reasons=ClockReason(0),
        pcie_generation=3, pcie_width=4, pcie_replays=0,
    )  # fmt: skip


def wrong_bit(stage: StageName = "memory") -> CheckFinding:
    return CheckFinding(
        kind="wrong_bits", severity="error", stage=stage, count=1,
        sentence="1 wrong bit at 512 MiB of the tested memory: 0 became 1.",
    )  # fmt: skip


def hot_card() -> CheckFinding:
    return CheckFinding(
        kind="throttled", severity="doubt", stage="load",
        sentence="The card slowed itself down for 7 s because it was hot (hardware).",
    )  # fmt: skip


def _verdict(findings: tuple[CheckFinding, ...]) -> CheckVerdict:
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "failed"
    return "inconclusive" if "doubt" in severities else "passed"


def checking_engines(inventory: Inventory) -> Engines:
    """Return engines that can use the cards of a PC, and whose checks find nothing."""
    return Engines(
        {
            DescribeEngine: [described_for(inventory)],
            RunCheck: lambda _engine, request: check_round(request),
        }
    )


def answer_with(engines: Engines, **script: Any) -> None:
    engines.scripts[RunCheck] = lambda _engine, request: check_round(request, **script)


def requests_of(engines: Engines) -> list[RunCheck]:
    return [one for one in engines.requests if isinstance(one, RunCheck)]


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
