from __future__ import annotations

from gpu_studio.core.failure import FailureKind, StudioError, failure_from


def test_an_expected_failure_is_its_sentence_and_no_trace():
    failure = failure_from(StudioError(FailureKind.TOO_LARGE, "Too large for this PC."))
    assert (failure.kind, failure.message) == (FailureKind.TOO_LARGE, "Too large for this PC.")
    assert failure.traceback_text == ""


def test_an_unexpected_failure_is_one_line_for_people_and_its_trace_for_the_log():
    try:
        raise ValueError("first line\nsecond line " + "x" * 1000)
    except ValueError as error:
        failure = failure_from(error)
    assert failure.kind is FailureKind.INTERNAL
    assert failure.message == "ValueError: first line"
    assert "Traceback" in failure.traceback_text
