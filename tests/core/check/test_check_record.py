"""The record of a check as a file from this program, from a newer one, and from nobody."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.check.check_record import CheckRecord, decode_record, encode_record
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.check_messages import StageOutcome
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from tests.fakes.check_answers import COVERAGE, GT_1030, wrong_bit


def record() -> CheckRecord:
    stage = StageOutcome(name="memory", verdict="failed", tested="1 GiB", errors=1, seconds=9.0)
    return CheckRecord(
        device=GT_1030, started_at="2026-11-22T14:40:00.000+01:00", minutes=1, seconds=9.0,
        rounds=1, stages=(stage,), findings=(wrong_bit(),), verdict="failed", sentence="1 error.",
        next_action="Restart the PC.", coverage=COVERAGE,
    )  # fmt: skip


def test_a_record_opens_again_as_it_was() -> None:
    assert decode_record(encode_record(record())) == record()


def test_a_record_names_no_copy_of_a_card_by_itself() -> None:
    written = msgspec.json.decode(encode_record(record()))
    assert written["uuid"] is written["serial"] is None


def test_errors_are_counted_over_all_stages() -> None:
    second = msgspec.structs.replace(record().stages[0], name="cool", errors=4)
    assert msgspec.structs.replace(record(), stages=(record().stages[0], second)).errors == 5


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[]", b"[" * 20_000, b'{"schema": 1}', b'{"schema": "1"}',
             b" " * LARGEST_RECORD_BYTES + encode_record(record())],
)  # fmt: skip
def test_what_is_no_record_is_refused_in_words(text: bytes) -> None:
    with pytest.raises(StudioError, match="not the record of a check") as refused:
        decode_record(text)
    assert refused.value.kind is FailureKind.FILE_REFUSED


def test_a_newer_programs_record_asks_for_an_update() -> None:
    newer = encode_record(record()).replace(b'"schema":1', b'"schema":2')
    with pytest.raises(StudioError, match="newer version"):
        decode_record(newer.replace(b'"failed"', b'"crumbled"'))
