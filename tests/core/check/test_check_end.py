"""Each end of a check has its own words and color."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.check.check_end import CheckEnd, end_of, end_tone, end_words
from gpu_studio.core.check.check_record import CheckRecord, Interruption
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.notice import Tone
from tests.fakes.check_answers import check_round, hot_card, wrong_bit
from tests.fakes.check_records import STARTED_AT, check_record

LOST = RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, "the GPU is lost", fatal=True))
REFUSED = RequestFailed(failure=Failure(FailureKind.NO_KERNEL, "It has no code for this card."))


def ended(
    end: RequestFailed | EngineEnded, *, end_in: str | None, device: str = "cuda:0"
) -> CheckRecord:
    """Return the record of a check whose engine ended in a stage, or before the first."""
    run = CheckRun(CheckPlan(device=device, minutes=6), STARTED_AT)
    request = run.next_request()
    assert request is not None
    events = check_round(request, end_in=end_in or "load")
    for event in events if end_in else [next(events)]:
        run.apply(event)  # type: ignore[arg-type]  # no pause
    run.apply(end)
    return run.record()


def interrupted() -> CheckRecord:
    gap = (Interruption(after_s=70.0, is_restart=True),)
    return msgspec.structs.replace(check_record(), verdict="inconclusive", interruptions=gap)


@pytest.mark.parametrize(
    ("record", "end", "tone", "words"),
    [
        (check_record(), CheckEnd.PASSED, Tone.GOOD, "0 errors"),
        (check_record({"memory": (wrong_bit(),) * 3}), CheckEnd.ERRORS, Tone.FAILURE, "3 errors"),
        (ended(LOST, end_in="compute"), CheckEnd.LOST, Tone.FAILURE, "Card failed"),
        (ended(EngineEnded(exit_code=-11), end_in="compute", device="cpu"), CheckEnd.LOST,
         Tone.FAILURE, "Check crashed"),
        (ended(EngineEnded(exit_code=-9), end_in="compute"), CheckEnd.DOUBTFUL, Tone.AMBER,
         "No clear result"),
        (check_record({"load": (hot_card(),)}), CheckEnd.DOUBTFUL, Tone.AMBER, "No clear result"),
        (ended(REFUSED, end_in=None), CheckEnd.NOTHING_TESTED, Tone.AMBER, "Nothing tested"),
        (interrupted(), CheckEnd.INTERRUPTED, Tone.AMBER, "Interrupted"),
        (check_record(stop_in="memory"), CheckEnd.STOPPED, Tone.AMBER, "Stopped early"),
        (msgspec.structs.replace(check_record(), verdict="partial"), CheckEnd.PARTIAL, Tone.AMBER,
         "Partly tested"),
    ],
)  # fmt: skip
def test_an_end_has_its_words_and_only_a_pass_is_green(
    record: CheckRecord, end: CheckEnd, tone: Tone, words: str
) -> None:
    assert end_of(record) is end
    assert end_tone(record) is tone
    assert end_words(record).replace("\u202f", " ") == words


def test_a_card_without_code_is_named_with_its_driver_and_says_why() -> None:
    record = ended(REFUSED, end_in=None)
    assert record.sentence == "It has no code for this card."
    assert record.device.driver_version
    assert record.device.silicon
    assert record.sentence.rstrip(".") in record.next_action
