"""Times in ISO 8601."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.units import moment_order, shown_moment

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def clock_of_nepal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "NPT-5:45")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let a process choose")
def test_a_time_is_shown_by_this_pcs_clock(clock_of_nepal: None) -> None:
    assert shown_moment("2026-03-01T05:00:00-05:00") == "2026-03-01 15:45"
    assert shown_moment("2026-03-01T10:00:00Z") == "2026-03-01 15:45"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_the_ends_of_the_calendar_are_shown_as_they_stand(text: str) -> None:
    assert shown_moment(text) == text[:16].replace("T", " ")
    assert moment_order(text)[1] == text


def test_a_text_that_is_no_time_is_shown_as_it_stands() -> None:
    assert shown_moment("once upon a time") == "once upon a time"
