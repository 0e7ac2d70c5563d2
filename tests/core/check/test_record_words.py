"""What the facts and the limits of a record say of its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.record_words import record_facts, record_limits
from gpu_studio.core.messages.check_messages import LoadStep
from tests.fakes.check_records import check_record

if TYPE_CHECKING:
    from gpu_studio.core.check.check_record import CheckRecord


def test_what_a_record_cannot_rule_out_is_written_for_its_device() -> None:
    of_cpu = record_limits(check_record(device="cpu"))
    assert any(one.startswith("RAM: RAM that other") for one in of_cpu)
    assert any("a quarter of what is free" in one for one in of_cpu)
    assert any("596" in one and "other programs" in one for one in record_limits(check_record()))
    stopped = record_limits(check_record(stop_in="memory"))
    assert "did not run: PCIe link." in stopped[0]


def test_untested_memory_is_a_limit_only_if_some_was_left_out() -> None:
    def left_out(record: CheckRecord) -> list[str]:
        return [one for one in record_limits(record) if one.startswith("Faults in ")]

    record = check_record()
    assert record.coverage is not None
    assert len(left_out(record)) == 1
    whole = msgspec.structs.replace(record.coverage, tested_bytes=record.coverage.total_bytes)
    assert not left_out(msgspec.structs.replace(record, coverage=whole))
    assert not left_out(msgspec.structs.replace(record, coverage=None))


def test_the_facts_of_a_card_have_its_heat_and_clock_with_their_limits() -> None:
    facts = {fact.title: fact.value for fact in record_facts(check_record())}
    assert facts["Chip"] == "GP108 (1d01)"
    assert facts["Highest temperature"].startswith("63")
    assert "94" in facts["Highest temperature"]
    assert "1227" in facts["Lowest clock under load"]
    of_cpu = dict(record_facts(check_record(device="cpu")))
    assert not {"VBIOS", "Card"} & set(of_cpu)
    assert of_cpu["Highest temperature"] == of_cpu["Lowest clock under load"]
    assert of_cpu["Lowest clock under load"] == "not reported by this PC"
    assert not [title for title in facts if title.startswith("Load in steps")]
    assert of_cpu["Memory tested"].endswith("GiB free (74\u202f%), in this program's own RAM")


def test_the_load_in_steps_is_a_line_for_each_period() -> None:
    def step(period_s: float, duty: float, errors: int = 0) -> LoadStep:
        return LoadStep(
            duty_percent=duty, period_s=period_s, bursts=90, errors=errors,
            sm_clock_mhz=1500.0 - duty, power_w=duty,
        )  # fmt: skip

    steps = (step(1.0, 40.0, errors=2), step(0.005, 20.0), step(0.005, 40.0))
    facts = dict(record_facts(msgspec.structs.replace(check_record(), load_steps=steps)))
    assert facts["Load in steps, 5\u202fms"] == (
        "0 of 180 bursts wrong at 20, 40\u202f% load, lowest clock 1460\u202fMHz, up to 40\u202fW"
    )
    assert facts["Load in steps, 1000\u202fms"].startswith("2 of 90 bursts wrong at 40\u202f%")
