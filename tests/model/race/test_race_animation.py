"""Animations that are painted while the window closes: none holds it up, each is named."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gpu_studio.model.race import race_animation
from gpu_studio.model.race.race_animation import RaceAnimation

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio


@pytest.fixture(autouse=True)
def _painter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_animation, "PAINTER", "tests.process.called")


def test_a_window_that_closes_ends_its_painters_and_names_what_it_did_not_save(
    studio: Studio, tmp_path: Path
) -> None:
    animation = RaceAnimation(studio, studio)
    for name in ("first", "second", "third"):
        animation.save(b"hang", tmp_path / f"{name}.webp")
    begin_s = time.monotonic()
    animation.close()

    assert time.monotonic() - begin_s < 4
    assert not list(tmp_path.glob("*.webp"))
    again = RaceAnimation(studio, studio)
    notice = again.take_unsaved().sentence
    assert all(f"{name}.webp" in notice for name in ("first", "second", "third"))
    assert not again.take_unsaved().sentence


def test_what_was_saved_or_failed_before_is_not_named(
    qtbot: QtBot, studio: Studio, tmp_path: Path
) -> None:
    animation = RaceAnimation(studio, studio)
    said: list[str] = []
    animation.notified.connect(lambda notice: said.append(notice.sentence))
    animation.save(b"refuse", tmp_path / "bad.webp")
    animation.save(b"good", tmp_path / "good.webp")
    qtbot.waitUntil(lambda: len(said) == 2)
    animation.close()

    assert "could not be painted" in said[0]
    assert said[1] == f"Saved as {tmp_path / 'good.webp'}"
    assert (tmp_path / "good.webp").read_bytes() == b"doog"
    assert not animation.take_unsaved().sentence
