"""Pictures and animations that a child paints: each is a file or a sentence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.race import race_saving
from gpu_studio.model.race.race_saving import RaceSaving

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio


@pytest.fixture(autouse=True)
def _painter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_saving, "PAINTER", "tests.process.called")


def test_a_window_that_closes_ends_its_painters_and_names_what_it_did_not_save(
    studio: Studio, tmp_path: Path
) -> None:
    saving = RaceSaving(studio, studio)
    for name in ("first", "second"):
        saving.save(b"hang", tmp_path / f"{name}.webp")
    begin_s = time.monotonic()
    saving.close()
    assert time.monotonic() - begin_s < 4
    assert not list(tmp_path.glob("*.webp"))
    again = RaceSaving(studio, studio)
    notice = again.take_unsaved().sentence
    assert all(f"{name}.webp" in notice for name in ("first", "second"))
    assert not again.take_unsaved().sentence


def test_each_file_is_written_or_named_with_the_reason(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    saving = RaceSaving(studio, studio)
    said: list[str] = []
    saving.notified.connect(lambda notice: said.append(notice.sentence))
    saving.save(b"refuse", tmp_path / "bad.webp")
    saving.save(b"good", tmp_path / "missing" / "good.webp")
    saving.save(b"good", tmp_path / "good.webp")
    qtbot.waitUntil(lambda: len(said) == 3)
    saving.close()
    assert "could not be painted: it is no message" in said[0]
    assert "could not be written" in said[1]
    assert said[2] == f"Saved as {tmp_path / 'good.webp'}"
    assert (tmp_path / "good.webp").read_bytes() == b"doog"
    assert not saving.take_unsaved().sentence, "each was said"
