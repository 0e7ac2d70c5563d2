"""Races of earlier days: each finished run is kept, and can be raced against as a ghost."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.history import FOLDER_NAME, History
from gpu_studio.core.benchmark.kept_run import kept_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.failure import StudioError
from gpu_studio.core.moments import local_now, shown_moment
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.contestant import is_raceable
from gpu_studio.model.kept_device import kept_card, kept_name
from gpu_studio.model.race.ghosts import ghost_side, track_of
from gpu_studio.model.race.race_entries import name_of
from gpu_studio.model.task_queue import TaskQueue

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.history import HistoryEntry, HistoryList
    from gpu_studio.core.benchmark.kept_run import KeptRun
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_side import RaceSide
    from gpu_studio.model.studio import Studio

_log = logging.getLogger(__name__)
# The newest runs of the history are searched for races, and a list shows a few of them.
_MOST_READ, _MOST_SHOWN = 300, 8


class RaceHistory(QObject):
    """Keeps the runs of races in the history of all runs, with a thread for the files.

    The frames are not kept: an earlier run races by its clock and its way to the finish line.

    Signals:
        changed(): other earlier runs can be raced against.
        notified(Notice): why a run could not be kept.
    """

    changed = Signal()
    notified = Signal(object)

    def __init__(self, studio: Studio, race: Race, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._race, self._board = race, studio.board
        folder = studio.data_folder
        self._history = History(folder / FOLDER_NAME if folder is not None else None)
        self._entries: tuple[HistoryEntry, ...] = ()
        self._question: tuple[object, ...] = ()
        self._ghosts: list[RaceSide] = []
        self._kept: set[str] = set()
        self._waiting: list[KeptRun] = []
        self._files = TaskQueue(self)
        self._files.failed.connect(self._fail)
        race.race_changed.connect(self._keep_results)
        studio.closing.connect(self.close)

    @property
    def ghosts(self) -> list[RaceSide]:
        """The earlier runs of the chosen picture and size, newest first, one of each contestant."""
        choices = self._race.choices
        question = choices.picture.name, choices.size, choices.photo.identity, choices.seeds
        if question != self._question:
            self._question, self._ghosts = question, self._ghosts_of_this_race()
        return self._ghosts

    def _ghosts_of_this_race(self) -> list[RaceSide]:
        sides: dict[str, RaceSide] = {}
        for entry in self._entries:
            header = entry.header
            result = header.result
            if self._is_of_this_race(result) and len(sides) < _MOST_SHOWN:
                usual = short_name(result.device_name)
                name = name_of(result, kept_name(header, self._board, usual))
                day = shown_moment(header.kept_at)[:10]
                side = ghost_side(result, name, f"run of {day}", track_of(result))
                side.run.card = kept_card(header, self._board)
                sides.setdefault(f"{side.entry.label} {side.run.card}", side)
        return list(sides.values())

    def refresh(self) -> None:
        """Keep the new runs, and look for earlier ones."""
        history, waiting = self._history, self._waiting
        self._waiting = []
        self._files.add(lambda: _kept_and_listed(history, waiting), self._show, keeps=bool(waiting))

    def close(self) -> None:
        """Keep the runs that wait for the end of the race: no result is lost."""
        if self._waiting:
            self.refresh()
        self._files.close()

    def _is_of_this_race(self, result: RunFinished) -> bool:
        choices = self._race.choices
        if result.workload != choices.picture.name or result.size != choices.size:
            return False
        if result.race is None or not is_raceable(result) or result.recording is not None:
            return False
        photo = choices.photo.identity if choices.picture.name == "learn" else ""
        return result.race.photo == photo and result.race.seeds == choices.used_seeds

    def _keep_results(self) -> None:
        """Keep the runs that have finished since."""
        now = local_now()
        for side in self._race.sides:
            run = side.run
            is_new = run.result is not None and run.request.run_id not in self._kept
            if is_new and not side.origin:
                self._kept.add(run.request.run_id)
                self._waiting.append(kept_of(run, now))
        if self._waiting and not self._race.state.is_busy:  # a race is not disturbed by a disk
            self.refresh()

    def _show(self, listed: tuple[HistoryList, str]) -> None:
        contents, trouble = listed
        self._entries, self._question = contents.entries, ()
        if trouble:
            self.notified.emit(Notice(trouble, Tone.FAILURE))
        self.changed.emit()

    def _fail(self, failure: Failure) -> None:
        self.notified.emit(Notice(failure.message, Tone.FAILURE))


def _kept_and_listed(history: History, waiting: list[KeptRun]) -> tuple[HistoryList, str]:
    trouble = _keep(history, waiting)
    return history.contents(_MOST_READ), trouble


def _keep(history: History, waiting: list[KeptRun]) -> str:
    """Keep some runs; return the reason if that failed."""
    trouble = ""
    for kept in waiting:
        try:
            history.add(kept)
        except StudioError as error:  # it stays in memory
            _log.warning("%s", error)
            trouble = str(error)
    return trouble
