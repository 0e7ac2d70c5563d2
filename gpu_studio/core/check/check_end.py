"""How a check ended: its largest words and their tone, the same in window, page, picture and text.

A verdict alone does not say it: a check that tested nothing is inconclusive like one with a doubt.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gpu_studio.core.check.record_words import errors_text
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.notice import Tone

if TYPE_CHECKING:
    from gpu_studio.core.check.check_record import CheckRecord


class CheckEnd(Enum):
    """How a check ended, which decides what its verdict may say."""

    PASSED = "passed"
    ERRORS = "errors"  # errors were counted
    LOST = "lost"  # the device or its driver ended the check, before any other error
    DOUBTFUL = "doubtful"  # no error, and a reason not to rely on that
    INTERRUPTED = "interrupted"  # the PC restarted, or the program ended
    NOTHING_TESTED = "nothing_tested"
    STOPPED = "stopped"  # by the user, in the middle
    PARTIAL = "partial"


_TONES = {
    CheckEnd.PASSED: Tone.GOOD,
    CheckEnd.ERRORS: Tone.FAILURE,
    CheckEnd.LOST: Tone.FAILURE,
}
_WORDS = {
    CheckEnd.DOUBTFUL: "No clear result",
    CheckEnd.INTERRUPTED: "Interrupted",
    CheckEnd.NOTHING_TESTED: "Nothing tested",
    CheckEnd.STOPPED: "Stopped early",
    CheckEnd.PARTIAL: "Partly tested",
}


def end_of(record: CheckRecord) -> CheckEnd:
    """Return how the check of a record ended."""
    if record.verdict == "failed":
        errors = (one for one in record.findings if one.severity == "error")
        is_lost = record.errors <= 1 and any(one.kind == "card_lost" for one in errors)
        return CheckEnd.LOST if is_lost else CheckEnd.ERRORS
    if not record.has_tested:
        return CheckEnd.NOTHING_TESTED
    if record.interruptions and record.verdict == "inconclusive":
        return CheckEnd.INTERRUPTED
    if record.verdict == "inconclusive":
        return CheckEnd.DOUBTFUL
    if record.verdict == "passed":
        return CheckEnd.PASSED
    return CheckEnd.STOPPED if record.is_stopped else CheckEnd.PARTIAL


def end_words(record: CheckRecord) -> str:
    """Return the largest words of a record: a number of errors, or why there is none.

    "0 errors" belongs to a pass alone.
    """
    end = end_of(record)
    if end is CheckEnd.LOST:
        return "Check crashed" if is_cpu(record.device.address) else "Card failed"
    return _WORDS.get(end) or errors_text(record.errors)


def end_tone(record: CheckRecord) -> Tone:
    """Return how good or bad the end is; only a pass is good."""
    return _TONES.get(end_of(record), Tone.AMBER)
