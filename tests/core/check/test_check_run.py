from typing import Any

import msgspec
import pytest

from gpu_studio.core.check.check_record import CheckRecord, end_of
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.stages import (
    CHECK_MINUTES,
    STAGES,
    is_enough,
    round_count,
    round_s,
    stage_budget_s,
    stages_for,
)
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import (
    STAGE_NAMES,
    CheckVerdict,
    CheckVitalsRead,
    StageName,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import Event
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.check_answers import COVERAGE, GT_1030, check_round, run_round, wrong_bit

CUDA_ERROR = RequestFailed(
    failure=Failure(
        FailureKind.CUDA_ERROR,
        "The card stopped with an error: unspecified launch failure. PyTorch has to restart.",
        "Traceback (most recent call last)",
        fatal=True,
        cause="The card stopped with an error: unspecified launch failure.",
    )
)


def started(minutes: int = 1, **options: Any) -> CheckRun:
    return CheckRun(CheckPlan(device="cuda:0", minutes=minutes, **options), "2026-11-22T14:40:00")


def run_all(run: CheckRun) -> CheckRecord:
    while run_round(run):
        pass
    return run.record()


def verdicts(run: CheckRun) -> dict[StageName, CheckVerdict]:
    return {stage.name: stage.verdict for stage in run.outcomes()}


def test_a_clean_check_passes_and_says_what_was_tested() -> None:
    run = started()
    record = run_all(run)
    assert record.verdict == "passed"
    assert record.sentence == (
        "No errors found, with 70\u202f% of all 1.95\u202fGiB of video memory tested. "
        "Tested: load and heat, compute, correctness of PyTorch, video memory and PCIe link. "
        "Passing cannot rule out every fault."
    )
    assert record.next_action == "This was a glance: run the 6-minute check."
    assert record.device == GT_1030
    assert record.coverage == COVERAGE
    assert record.rounds == 1
    assert record.seconds == pytest.approx(60, abs=1)
    assert record.highest_temperature_c == pytest.approx(63, abs=2)


def test_the_lowest_clock_is_that_of_the_load_after_its_start() -> None:
    run = started()
    request = run.next_request()
    assert request is not None
    for event in check_round(request):
        if isinstance(event, CheckVitalsRead):
            # Idle at first and after the load, and between the two under load.
            clock = 1400.0 if 3.0 <= event.elapsed_s < 25.2 else 139.0
            vitals = msgspec.structs.replace(event.vitals, sm_clock_mhz=clock)
            event = msgspec.structs.replace(event, vitals=vitals)
        run.apply(event)
    assert run.record().lowest_clock_mhz == 1400.0


def test_a_stop_keeps_what_was_found_so_far() -> None:
    run = started()
    run_round(run, stop_in="memory")
    assert verdicts(run) == {
        "load": "passed", "compute": "passed", "layouts": "passed",
        "memory": "partial",
        "link": "skipped",
    }  # fmt: skip
    assert run.next_request() is None
    assert run.record().verdict == "partial"
    assert run.record().is_stopped


def test_an_engine_that_ends_after_a_stop_is_a_stop() -> None:
    run = started()
    run_round(run, end_in="compute")
    run.stop()
    run.apply(EngineEnded(exit_code=None, stopped=True))
    assert verdicts(run)["compute"] == "partial"
    assert not run.findings
    assert run.record().verdict == "partial"


@pytest.mark.parametrize("stage", ["load", "link"])
@pytest.mark.parametrize(
    ("end", "silent", "verdict", "words"),
    [
        (CUDA_ERROR, False, "failed", "unspecified launch failure"),
        (EngineEnded(exit_code=-11), False, "failed", "exit code -11"),
        (EngineEnded(exit_code=3221225477), False, "failed", "exit code 3221225477"),
        (EngineEnded(exit_code=-9), False, "inconclusive", "memory (RAM)"),
        (EngineEnded(exit_code=1), False, "inconclusive", "own program"),
        (EngineEnded(exit_code=None, stopped=True), True, "failed", "stopped answering"),
    ],
)
def test_an_engine_that_is_lost_is_the_result_of_its_stage(
    stage: StageName, end: Event, silent: bool, verdict: CheckVerdict, words: str
) -> None:
    run = started()
    run_round(run, end_in=stage)
    if silent:
        run.give_up()
    run.apply(end)
    record = run.record()
    assert verdicts(run)[stage] == record.verdict == verdict
    assert run.is_over
    assert run.next_request() is None
    sentence = run.findings[-1].sentence
    assert words in sentence
    assert "Traceback" not in sentence
    assert "engine has to" not in sentence
    assert "Step 10 of 20" in sentence
    after = STAGE_NAMES[STAGE_NAMES.index(stage) + 1 :]
    assert {verdicts(run)[name] for name in after} <= {"skipped"}
    assert record.errors == (verdict == "failed")


def test_an_error_before_the_loss_is_counted_with_it() -> None:
    run = started()
    run_round(run, findings={"memory": (wrong_bit(),)}, end_in="memory")
    run.apply(CUDA_ERROR)
    record = run.record()
    assert record.errors == 2
    assert end_of(record).sentence == "2\u202ferrors"
    # The loss is the result; the error may be its first sign.
    assert record.sentence.startswith("The card failed during “Video memory”.")
    assert record.sentence.endswith("Before that, 1 error was found.")


def test_an_overnight_check_adds_its_rounds_up() -> None:
    run = started(minutes=480, stages=("compute", "layouts"))
    run_round(run, findings={"compute": (wrong_bit("compute"),)})
    assert (run.record().verdict, run.record().rounds) == ("failed", 1)
    run_round(run)
    assert (run.round, run.rounds) == (2, 16)
    assert verdicts(run) == {"compute": "failed", "layouts": "passed"}
    assert run.stages[0].seconds == pytest.approx(2 * 0.16 * 1800)
    record = run_all(run)
    assert (record.rounds, record.errors) == (16, 1)


def test_an_engine_that_sends_an_impossible_number_is_not_believed() -> None:
    with pytest.raises(ValueError, match="impossible"):
        CheckVitalsRead(elapsed_s=1.0, vitals=Telemetry(power_w=-1.0))
    run = started()
    for at_s in (9.0, 3.0):
        run.apply(CheckVitalsRead(elapsed_s=at_s, vitals=Telemetry(power_w=9.0)))
    assert [one.at_s for one in run.record().readings] == [9.0, 9.0]


@pytest.mark.parametrize("minutes", CHECK_MINUTES)
def test_the_stages_of_all_rounds_take_the_chosen_time(minutes: int) -> None:
    one_s = sum(stage_budget_s(stage.name, round_s(minutes)) for stage in STAGES)
    assert one_s * round_count(minutes) == pytest.approx(60 * minutes)
    assert round_count(minutes) == (16 if minutes == 480 else 1)


def test_a_minute_has_no_time_for_what_is_about_pytorch() -> None:
    assert stages_for(1, "cpu") == ("load", "compute", "memory", "link")
    assert stages_for(6, "cuda:0") == stages_for(480, "cuda:0") == STAGE_NAMES
    assert stages_for(1, "vulkan:0") == stages_for(6, "vulkan:0") == ("compute", "memory")


def test_under_three_quarters_of_the_free_memory_is_partial() -> None:
    enough = msgspec.structs.replace(COVERAGE, tested_bytes=75, free_bytes=100, total_bytes=120)
    assert is_enough(enough)
    assert not is_enough(msgspec.structs.replace(enough, tested_bytes=74))


def test_under_half_of_all_memory_is_partial_even_if_no_more_was_free() -> None:
    desktop = msgspec.structs.replace(COVERAGE, total_bytes=200, free_bytes=110, tested_bytes=100)
    assert is_enough(desktop)
    assert not is_enough(msgspec.structs.replace(desktop, tested_bytes=99))
