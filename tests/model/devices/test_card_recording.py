"""A recording of the card is made by a process of its own, and said step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.devices.card_recording import CardRecording
from gpu_studio.model.engine_session import EngineState

if TYPE_CHECKING:
    from pathlib import Path


class ScriptedChild:
    """Writes what a test says, and a file if it is told to end well."""

    def __init__(self, folder: Path, lines: tuple[str, ...], exit_code: int = 0) -> None:
        self._folder, self._lines, self._exit_code = folder, lines, exit_code
        (folder / "card.zip").write_bytes(b"recorded")
        (folder / "log.txt").write_text("a warning\ngpu-studio: There is no card.\n")

    def lines(self):
        for line in self._lines:
            yield line.format(file=(self._folder / "card.zip").as_posix()).encode()

    def kill(self) -> None:
        """Do nothing: it ends by itself."""

    def end(self) -> int:
        return self._exit_code


@pytest.fixture
def notices(studio):
    seen = []
    studio.headlines.headline_changed.connect(seen.append)
    return seen


def sentences(notices) -> list[str]:
    return [one.sentence for one in notices if one is not None]


def test_each_step_is_said_and_the_file_is_where_it_was_asked_for(qtbot, studio, notices, tmp_path):
    lines = ('{{"step": 1, "steps": 2, "doing": "matmul"}}\n', '{{"file": "{file}"}}\n')
    recording = CardRecording(studio, studio, start=lambda folder: ScriptedChild(folder, lines))
    recording.start(tmp_path / "mine.zip")
    qtbot.waitUntil(lambda: not recording.is_recording)
    assert (tmp_path / "mine.zip").read_bytes() == b"recorded"
    shown = sentences(notices)
    assert "Recording, step 1 of 2: matmul." in shown
    assert shown[-1] == "The recording is in mine.zip."


def test_what_went_wrong_is_the_last_line_of_its_log(qtbot, studio, notices, tmp_path):
    recording = CardRecording(
        studio, studio, start=lambda folder: ScriptedChild(folder, (), exit_code=1)
    )
    recording.start(tmp_path / "mine.zip")
    qtbot.waitUntil(lambda: not recording.is_recording)
    assert not (tmp_path / "mine.zip").exists()
    assert sentences(notices)[-1] == "Could not make the recording: There is no card."


def test_it_waits_for_the_engine_s_work(qtbot, studio, notices, tmp_path, monkeypatch):
    monkeypatch.setattr(studio.session, "state", EngineState.BUSY)
    recording = CardRecording(studio, studio, start=lambda _: pytest.fail("started"))
    recording.start(tmp_path / "mine.zip")
    assert not recording.is_recording
    assert "The engine is at work" in sentences(notices)[-1]
