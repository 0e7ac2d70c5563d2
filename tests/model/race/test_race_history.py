"""Races of earlier days, kept and raced against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.frames import RaceTrack
from gpu_studio.core.race.pictures import PAINT
from gpu_studio.model.race import race_history
from gpu_studio.model.race.ghosts import ghost_side, track_of
from gpu_studio.model.race.race_entries import name_of
from gpu_studio.model.race.race_history import RaceHistory
from tests.fakes.race_answers import race_run, race_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.race.race import Race
    from gpu_studio.model.studio import Studio
    from tests.fakes.scripted_engine import Engines


@pytest.fixture
def studio(studio: Studio, tmp_path: Path) -> Studio:
    studio.data_folder = tmp_path / "data"
    return studio


def run(qtbot: QtBot, race: Race) -> None:
    race.start()
    qtbot.waitUntil(lambda: race.verdict is not None)


def test_each_run_of_a_race_is_kept_once(
    qtbot: QtBot, race: Race, ready_studio: Studio, tmp_path: Path
) -> None:
    history = RaceHistory(ready_studio, race, race)
    with qtbot.waitSignal(history.changed):
        run(qtbot, race)
    race.replay()
    race.replay()
    history.close()

    entries = History(tmp_path / "data" / FOLDER_NAME).contents().entries
    assert sorted(entry.header.result.conditions.cpu_threads for entry in entries) == [1, 4]


def test_a_run_that_ended_before_the_window_closed_in_a_race_is_kept(
    qtbot: QtBot, race: Race, ready_studio: Studio, racing: Engines, tmp_path: Path
) -> None:
    def answer(_engine: object, request: RunWorkload) -> Iterator[object]:
        yield from race_run(request, pause_after=4 if request.race.threads is None else None)

    racing.scripts[RunWorkload] = answer
    history = RaceHistory(ready_studio, race, race)
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())
    qtbot.waitUntil(lambda: len(race.sides[1].track) == 5)
    history.close()

    (entry,) = History(tmp_path / "data" / FOLDER_NAME).contents().entries
    assert entry.header.result.conditions.cpu_threads == 1


def test_an_earlier_run_is_a_ghost_with_its_way_but_without_pictures(
    qtbot: QtBot, race: Race, ready_studio: Studio
) -> None:
    history = RaceHistory(ready_studio, race, race)
    with qtbot.waitSignal(history.changed):
        run(qtbot, race)
    fresh = RaceHistory(ready_studio, race, race)
    with qtbot.waitSignal(fresh.changed):
        fresh.refresh()

    ghosts = {side.entry.label.partition(", run of")[0]: side for side in fresh.ghosts}
    assert set(ghosts) == {"CPU, 1 thread", "CPU, 4 threads"}
    ghost = ghosts["CPU, 1 thread"]
    seconds = race_seconds(ghost.run.request)
    assert ghost.end_s == seconds
    assert ghost.at(seconds / 2).progress == pytest.approx(0.5)
    assert ghost.at(seconds / 2).picture is None
    assert "run of" in ghost.run.recording
    history.close()
    fresh.close()


def test_a_race_against_an_earlier_run_keeps_only_the_new_one(
    qtbot: QtBot, race: Race, ready_studio: Studio, tmp_path: Path
) -> None:
    history = RaceHistory(ready_studio, race, race)
    with qtbot.waitSignal(history.changed):
        run(qtbot, race)

    race.choices.race_against(history.ghosts[0], "learn", race.choices.size)
    with qtbot.waitSignal(history.changed):
        run(qtbot, race)
    history.close()

    assert len(History(tmp_path / "data" / FOLDER_NAME).contents().entries) == 3


def test_another_size_or_picture_has_other_ghosts(
    qtbot: QtBot, race: Race, ready_studio: Studio
) -> None:
    history = RaceHistory(ready_studio, race, race)
    with qtbot.waitSignal(history.changed):
        run(qtbot, race)

    race.choices.choose_picture("grow")
    assert history.ghosts == []
    race.choices.choose_picture("learn")
    assert len(history.ghosts) == 2
    history.close()


def test_the_ghosts_are_made_once_for_each_question(
    qtbot: QtBot, race: Race, ready_studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[RunFinished] = []

    def counted(result: RunFinished) -> RaceTrack:
        runs.append(result)
        return track_of(result)

    monkeypatch.setattr(race_history, "track_of", counted)
    history = RaceHistory(ready_studio, race, race)
    with qtbot.waitSignal(history.changed):
        run(qtbot, race)

    first = history.ghosts
    assert len(first) == len(runs) == 2
    assert history.ghosts is first
    race.choices.choose_size(32)
    assert history.ghosts == []
    race.choices.choose_size(128)
    assert len(history.ghosts) == 2
    assert len(runs) == 4
    with qtbot.waitSignal(history.changed):
        history.refresh()
    assert len(history.ghosts) == 2
    assert len(runs) == 6, "other files may lie there now"
    history.close()


def test_a_folder_that_cannot_be_written_is_reported(
    qtbot: QtBot, race: Race, ready_studio: Studio, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("a file in place of the folder")
    history = RaceHistory(ready_studio, race, race)

    with qtbot.waitSignal(history.notified) as received:
        run(qtbot, race)

    assert received.args[0].tone is Tone.FAILURE
    history.close()


def test_a_ghost_of_the_custom_kernel_is_another_contestant_than_its_card() -> None:
    """Older versions painted with one."""
    (request,) = race_requests(PAINT, 64, [Contestant(device="cuda:0")], 5.0)
    plain = next(event for event in race_run(request) if isinstance(event, RunFinished))
    own = msgspec.structs.replace(plain, race=RaceParameters(own_kernel=True))
    sides = [ghost_side(one, name_of(one), "today", RaceTrack()) for one in (plain, own)]
    assert sides[0].entry.label != sides[1].entry.label
