"""The progress of an installation."""

from __future__ import annotations

import json

import pytest

from gpu_studio.core.builds.progress import (
    DownloadPace,
    InstallProgress,
    InstallStage,
    format_left,
    progress_from,
)
from gpu_studio.core.builds.trouble import no_network


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_progress_survives_a_line_of_json():
    result = InstallProgress(
        InstallStage.FAILED, 3, 9, 0.3, 12.5, "a.whl", no_network("pypi.org", "why"), "said"
    )
    assert progress_from(json.loads(json.dumps(result.value()))) == result
    bare = InstallProgress(InstallStage.WAITING)
    assert progress_from(json.loads(json.dumps(bare.value()))) == bare


def test_the_time_left_is_that_of_the_last_seconds():
    clock = Clock()
    pace = DownloadPace(clock)
    pace.note(0)
    assert pace.left_s(1000) is None
    for second in range(1, 61):  # 10 bytes a second, and then 1
        clock.now_s += 1
        pace.note(10 * min(second, 30) + max(0, second - 30))
    assert pace.left_s(1330) == pytest.approx(1000, rel=0.05)


def test_a_pause_does_not_count():
    clock = Clock()
    pace = DownloadPace(clock)
    pace.note(0)
    clock.now_s += 10
    pace.restart()
    for done in (0, 100, 200, 300):
        pace.note(done)
        clock.now_s += 1
    assert pace.left_s(400) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, "a few seconds left"),
        (34, "about 30 seconds left"),
        (58, "about 1 minute left"),
        (200, "about 3 minutes left"),
        (3590, "about 1 hour left"),
        (5400, "about 1.5 hours left"),
    ],
)
def test_a_time_is_rough(seconds, text):
    assert format_left(seconds) == text
