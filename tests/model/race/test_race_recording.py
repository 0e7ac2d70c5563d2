"""A race on its way into a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.race.race_recording import RaceRecording

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.race.race import Race
    from gpu_studio.model.studio import Studio

_NOW = "2026-11-22T11:50:00+00:00"


def test_nothing_is_made_before_the_end_and_nothing_reported_after_the_window(
    qtbot: QtBot, race: Race, ready_studio: Studio
) -> None:
    recording = RaceRecording(ready_studio, race, race)
    recordings: list[bytes] = []
    recording.recorded.connect(recordings.append)
    recording.record(_NOW, keeps_pictures=True)
    assert not recording.is_recording

    race.start()
    qtbot.waitUntil(lambda: race.verdict is not None)
    recording.record(_NOW, keeps_pictures=True)
    qtbot.waitUntil(lambda: not recording.is_recording)
    assert len(recordings) == 1

    recording.record(_NOW, keeps_pictures=True)
    recording.close()
    qtbot.waitUntil(lambda: not recording.is_recording)
    assert len(recordings) == 1, "a closed window asks for no file"
