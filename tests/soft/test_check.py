"""The check on soft cards: what it covers, what it keeps free, and a card that is lost in it.

Soft kernels compute nothing, so a check of results fails here, as it has to. Copies and memory
are real, so memory and link find nothing without a planted fault.

A check has much time here, and is stopped as soon as the test has seen enough.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.stages import reserve_bytes, stage_title
from gpu_studio.core.messages.check_messages import (
    STAGE_NAMES,
    CheckProgressed,
    CheckRoundFinished,
    CheckStarted,
    RunCheck,
    StageName,
)
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed, Stop
from gpu_studio.core.messages.message import Event
from gpu_studio.core.protocol import decode_line, encode
from tests.engine.engine_child import EngineChild
from tests.soft.conftest import MakePc, StartEngine
from tests.softcards.catalogue import MODERN_1996_MIB, RTX_3060

MIB = 1 << 20
# The size of a GT 1030; PyTorch's newest build has no code for that card itself.
CARD_OF_2_GB = MODERN_1996_MIB
SMALL_CARD = replace(MODERN_1996_MIB, mib=384, nvml_mib=384)
SLOW_CARD = replace(SMALL_CARD, kernel_ms=100)  # so slow that no stage is over before a fault comes
LONG_S = 3600.0


def request(*stages: StageName, **changes: Any) -> RunCheck:
    options = {"device": "cuda:0", "round_s": 30.0, **changes}
    return RunCheck(stages=stages or STAGE_NAMES, **options)


def checked(
    one: EngineChild, asked: RunCheck, on_event: Callable[[Event], None] = lambda _event: None
) -> CheckRun:
    """Return a check with the engine's answer; the engine may die of it."""
    run = CheckRun(
        CheckPlan(device=asked.device, minutes=1, stages=asked.stages), "2026-11-29T12:00:00"
    )
    run.next_request()
    one.send(encode(asked))
    event: Event | None = None
    while event is None or not event.ends(asked):
        line = one.process.stdout.readline()
        result = decode_line(line) if line else EngineEnded(exit_code=one.process.wait())
        is_of_check = type(result).__name__.startswith("Check")
        if not is_of_check and not isinstance(result, (RequestFailed, EngineEnded)):
            continue
        event = result  # type: ignore[assignment]
        assert event is not None
        run.apply(event)
        on_event(event)
    return run


def checked_until(
    one: EngineChild, asked: RunCheck, is_enough: Callable[[Event], bool]
) -> CheckRun:
    """Return a check that is stopped once the test has seen enough."""
    sent: list[bool] = []

    def look(event: Event) -> None:
        if not sent and is_enough(event):
            sent.append(True)
            one.send(encode(Stop()))

    return checked(one, asked, look)


def has_read_all(event: Event) -> bool:
    """Return whether a pattern was read in all chunks: the next one is written."""
    return isinstance(event, CheckProgressed) and ", 1 of 6 patterns" in event.tested


def outcome(run: CheckRun, stage: StageName) -> Any:
    return next(one for one in run.outcomes() if one.name == stage)


def test_nearly_all_free_memory_is_tested_and_the_reserve_stays_free(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(CARD_OF_2_GB)
    one = engine(pc)
    least_free: list[int] = []

    def look(event: Event) -> bool:
        if isinstance(event, CheckProgressed):
            use = pc.use_of(one.process.pid).cards[0]
            least_free.append(CARD_OF_2_GB.mib * MIB - use.size_bytes)
        return has_read_all(event)

    run = checked_until(one, request("memory", round_s=LONG_S), look)
    coverage = run.coverage
    assert coverage is not None
    assert coverage.tested_bytes >= 0.85 * coverage.free_bytes
    assert coverage.free_bytes > 1800 * MIB
    assert coverage.reserve_bytes == reserve_bytes(coverage.free_bytes)
    assert min(least_free) >= coverage.reserve_bytes
    assert run.errors == 0
    # The kernels that compare compute nothing, and the check notices that.
    assert [finding.kind for finding in run.findings] == ["blind"]
    assert "GiB" in outcome(run, "memory").tested


def test_memory_is_given_back(soft_pc: MakePc, engine: StartEngine) -> None:
    pc = soft_pc(SMALL_CARD)
    one = engine(pc)
    taken: list[int] = []

    def look(event: Event) -> None:
        if isinstance(event, (CheckProgressed, CheckRoundFinished)):
            taken.append(pc.use_of(one.process.pid).cards[0].size_bytes)

    checked(one, request("memory", round_s=4.0), look)
    assert max(taken) > 180 * MIB
    assert taken[-1] < 100 * MIB


def test_the_right_card_is_checked_and_the_other_is_left_alone(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(SMALL_CARD, replace(RTX_3060, mib=1024, nvml_mib=1024))
    one = engine(pc)
    started: list[CheckStarted] = []
    run = checked(
        one,
        request("link", device="cuda:1", round_s=30.0),
        lambda event: started.append(event) if isinstance(event, CheckStarted) else None,
    )
    first, second = pc.use_of(one.process.pid).cards
    assert started[0].device.name == RTX_3060.name
    assert second.launches > 0
    assert (first.launches, first.contexts) == (0, 0)
    assert run.record().device.address == "cuda:1"
    # An RTX 3060 with 1 GiB: its name fits another card.
    assert run.device is not None
    assert "memory in GiB" in run.device.contradiction
    assert run.record().verdict == "inconclusive"


def test_the_facts_and_the_sensors_are_the_drivers(soft_pc: MakePc, engine: StartEngine) -> None:
    pc = soft_pc(SMALL_CARD)
    pc.set(0, temperature_c=63, slowdown_c=94, pcie_replays=2, hotspot_c=80)
    run = checked(engine(pc), request("load", round_s=20.0))
    assert run.device is not None
    assert run.device.vbios
    assert run.device.driver_version == "580.95.05"
    assert run.device.slowdown_c == 94
    assert run.device.silicon
    assert run.record().highest_temperature_c == 63
    assert run.record().highest_hotspot_c == pytest.approx(80, abs=1)
    text = encode(run.finished()).decode() + repr(run.record())
    assert str(pc.cards[0].uuid) not in text


def result_of_loss(run: CheckRun, stage: StageName) -> None:
    """Assert that a lost card is told as the result of its stage."""
    record = run.record()
    assert outcome(run, stage).verdict == record.verdict == "failed"
    lost = next(finding for finding in run.findings if finding.kind == "card_lost")
    assert lost.stage == stage
    assert stage_title(stage, "cuda:0") in lost.sentence
    assert "Traceback" not in lost.sentence
    assert "\n" not in lost.sentence
    assert "Restart the PC" in record.next_action


@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_a_card_that_falls_off_the_bus_in_a_stage_is_its_result(
    stage: StageName, soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(SLOW_CARD)
    done: list[bool] = []

    def lose(event: Event) -> None:
        if isinstance(event, CheckProgressed) and not done:
            done.append(True)
            pc.set(0, lost=1)

    run = checked(engine(pc), request(stage, round_s=LONG_S), lose)
    result_of_loss(run, stage)


def test_a_card_without_code_in_this_build_is_not_called_broken(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(replace(SMALL_CARD, compute_capability="3.0"))
    run = checked(engine(pc), request("load"))
    assert run.record().verdict == "inconclusive"
    assert "no code" in run.findings[0].sentence
