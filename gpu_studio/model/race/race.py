"""A race: its two sides in turns, a ghost beside a live one, and the result."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, Showing
from gpu_studio.core.messages.run_messages import SamplesMeasured
from gpu_studio.core.notice import Notice
from gpu_studio.core.race.contestant import race_requests
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S, LEARN, PICTURES
from gpu_studio.core.race.side import RaceSide, first_finish_s
from gpu_studio.core.race.stage_view import Moment, StageView, invitation, result_notice
from gpu_studio.core.race.verdict import judge
from gpu_studio.core.units import format_size
from gpu_studio.model.pages import RACE
from gpu_studio.model.race.race_choices import RaceChoices
from gpu_studio.model.run_queue import QueueStep, RunQueue, WorkState, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadDescription
    from gpu_studio.core.race.verdict import Verdict
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.race.race_photo import RacePhoto
    from gpu_studio.model.studio import Studio

_REPLAY_MS = 50
# Of what is known, this share is caught up with at each frame. Nearer, there is nothing more to
# see; further ahead, the frames come too seldom to run evenly.
_FOLLOWS, _NEAR_S, _FAR_S = 0.15, 0.02, 1.0
_LONGEST_REPLAY_S = 12.0


class RaceClock(QObject):
    """The race's clock.

    Signals:
        changed(): it stands at another time: other frames are to be shown.
        replay_changed(): a replay began or ended.

    Attributes:
        now_s: the time of the race that is shown.
    """

    changed = Signal()
    replay_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.now_s = 0.0
        self._step_s = self._last_s = self._rest_s = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(_REPLAY_MS)
        self._timer.timeout.connect(self._on_timeout)

    @property
    def is_replaying(self) -> bool:
        """Whether the race that is over is shown again."""
        return self._timer.isActive()

    def set(self, now_s: float) -> None:
        """Show this time."""
        self.now_s = now_s
        self.changed.emit()

    def follow(self, known_s: float) -> None:
        """Go on towards a time up to which the race is known.

        A side's frames come only in its turns: so the clock runs evenly, a part of a turn later.
        """
        ahead_s = known_s - self.now_s
        if ahead_s > 0:
            is_even = _NEAR_S < ahead_s < _FAR_S
            self.set(self.now_s + ahead_s * _FOLLOWS if is_even else known_s)

    def replay(self, last_s: float, rest_s: float) -> None:
        """Show the race again, faster than it was if that takes too long.

        Args:
            last_s: where the replay ends.
            rest_s: the time to show afterwards.
        """
        self._last_s, self._rest_s = last_s, rest_s
        speed = max(last_s / _LONGEST_REPLAY_S, 1.0)
        self._step_s = speed * _REPLAY_MS / 1000
        self.now_s = 0.0
        self._timer.start()
        self.replay_changed.emit()
        self.changed.emit()

    def end_replay(self) -> None:
        """End the replay; does nothing without one."""
        if self.is_replaying:
            self._timer.stop()
            self.now_s = self._rest_s
            self.replay_changed.emit()
            self.changed.emit()

    def _on_timeout(self) -> None:
        now_s = self.now_s + self._step_s
        if now_s >= self._last_s:
            self.end_replay()
        else:
            self.set(now_s)


# The window draws a frame while nothing is timed.
REST_S = 0.01
# The lever may pass several sizes on its way.
_SETTLE_MS = 400


class _OneStep:
    """A plan of one step: the sides that are not over take turns."""

    def __init__(self, sides: Sequence[RaceSide]) -> None:
        self._runs = [side.run for side in sides if not side.is_over]

    def next_step(self, runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        return None if last is not None else step_of(self._runs)


class Race(QObject):
    """Runs one race at a time, and remembers who led at each size.

    Signals:
        begun(): a race was started.
        race_changed(): the race began, progressed or ended, or its choices or words changed.
        moment_changed(): the race's clock stands at another time: other frames are to be shown.

    Attributes:
        choices: what the next race is to be.
        clock: the time of the race that is shown.
        sides: the left and the right side of the race; empty before the first.
        verdict: the result; None before the end.
    """

    begun = Signal()
    race_changed = Signal()
    moment_changed = Signal()

    def __init__(self, studio: Studio, photo: RacePhoto, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.choices = RaceChoices(studio, photo, self)
        self.clock = RaceClock(self)
        self.sides: tuple[RaceSide, ...] = ()
        self.verdict: Verdict | None = None
        self._raced: WorkloadDescription = PICTURES[0]
        self._question: tuple[object, ...] = ()
        self._leaders: dict[tuple[object, ...], dict[int, str]] = {}
        self._next_number = 1
        self._runs_again = False
        self._queue = RunQueue(self)
        self._queue.step_begun.connect(self._on_step_begun)
        self._queue.event_received.connect(self._on_event_received)
        self._queue.finished.connect(self._on_finished)
        self._settling = QTimer(self)
        self._settling.setSingleShot(True)
        self._settling.timeout.connect(self._on_settled)
        self.choices.changed.connect(self.race_changed)
        self.choices.size_changed.connect(self._on_size_changed)
        self.choices.question_changed.connect(self._on_question_changed)
        self.clock.changed.connect(self.moment_changed)
        self.clock.replay_changed.connect(self.race_changed)

    @property
    def state(self) -> WorkState:
        """The state of the race."""
        return self._queue.state

    @property
    def can_run(self) -> bool:
        """Whether a race can start: one does not run, and the engine is known."""
        return not (self.state.is_busy or self.choices.problem or self.what_is_missing)

    @property
    def what_is_missing(self) -> str:
        """The reason why no race can start yet; empty once the engine is known."""
        return self._session.what_is_missing

    @property
    def _session(self) -> EngineSession:
        """The engine of the contestant that runs, in which both take turns."""
        return self._studio.pcs.session_of(self.choices.chosen[1].contestant.device)

    @property
    def raced(self) -> WorkloadDescription:
        """The picture of the current race, or else the chosen one."""
        return self._raced if self.sides else self.choices.picture

    @property
    def notice(self) -> Notice:
        """The headline, with the sentence below it as its detail."""
        choices = self.choices
        if self.state is WorkState.STOPPING:
            return Notice("Stopping…")
        if self.state.is_busy:
            return self.moment(()).progress()
        if self.verdict is None:
            names = [entry.label for entry in choices.chosen]
            return invitation(choices.picture, names, DEFAULT_BUDGET_S)
        words = ""
        if self.crossover is not None:
            size, name = self.crossover
            words = f"{name} leads from {format_size(size, choices.picture.size_text)} on."
        return result_notice(self.verdict, [side.label for side in self.sides], words)

    @property
    def leaders(self) -> dict[int, str]:
        """Who led at each size, by the side's label; empty where neither did."""
        return self._leaders.get(self.choices.question, {})

    @property
    def crossover(self) -> tuple[int, str] | None:
        """The first size at which another contestant leads, and its name; None if unknown."""
        known = sorted((size, name) for size, name in self.leaders.items() if name)
        for (_, one), (size, other) in itertools.pairwise(known):
            if one != other:
                return size, other
        return None

    @property
    def shown_sides(self) -> tuple[RaceSide, ...]:
        """The sides of the race, or those of the next one."""
        return self.sides or self._new_sides(self._requests())

    def moment(self, roles: Sequence[str]) -> Moment:
        """Return the race, or the next one, at its clock's time.

        Args:
            roles: the colors of the sides.
        """
        photo = self.choices.photo
        return Moment(
            self.raced,
            self.shown_sides,
            roles,
            now_s=self.clock.now_s,
            verdict=self.verdict,
            is_running=self.state.is_busy,
            photo=photo.picture if self.raced.name == LEARN.name else None,
            photo_identity=photo.identity,
        )

    def stage(self, roles: Sequence[str]) -> StageView:
        """Return what is to be shown on the full screen."""
        view, notice = self.moment(roles).stage(), self.notice
        if self.sides:
            return view
        return view._replace(headline=notice.sentence, detail=self.what_is_missing or notice.detail)

    def start(self) -> None:
        """Run the chosen race; does nothing while one runs."""
        choices = self.choices
        if not self.can_run:
            return
        self.clock.end_replay()
        self._raced, self._question = choices.picture, choices.question
        requests = self._requests()
        self._next_number += len(requests)
        self.sides, self.verdict = self._new_sides(requests), None
        choices.is_locked = True
        self._studio.wakefulness.need(RACE, needed=True)
        self.begun.emit()
        self._queue.start(_OneStep(self.sides), self._session)

    def stop(self) -> None:
        """Stop the race; the frames so far are kept."""
        self._runs_again = False
        if self._queue.stop():
            self.race_changed.emit()

    def replay(self) -> None:
        """Show the race that is over again, both sides at once; a second call ends that."""
        if self.clock.is_replaying:
            self.clock.end_replay()
        elif self.sides and not self.state.is_busy:
            last_s = max(side.end_s for side in self.sides)
            finishes_s = [side.end_s for side in self.sides if side.is_reached]
            # The result shows the first finish: nobody's way goes on after the last one.
            self.clock.replay(max(finishes_s, default=last_s), first_finish_s(self.sides))

    def show_recorded(self, sides: tuple[RaceSide, ...]) -> None:
        """Show a recorded race at its end; the next race is against its fastest contestant.

        Args:
            sides: both over, with results of the same picture and size.
        """
        request = sides[0].run.request
        ghost = min(sides, key=lambda side: side.end_s)
        raceable = ghost if ghost.is_raceable else None
        if not self.choices.race_against(raceable, request.workload, request.size):
            return
        self._raced, self.sides = self.choices.picture, sides
        self.verdict = judge(self._raced, [side.run for side in sides])
        self.clock.now_s = first_finish_s(sides)
        self._emit_all()

    def _requests(self) -> list[RunWorkload]:
        choices, ghost = self.choices, self.choices.ghost
        photo = choices.photo if choices.learns else None
        return race_requests(
            choices.picture,
            choices.size,
            [entry.contestant for entry in choices.chosen],
            DEFAULT_BUDGET_S,
            photo=photo.identity if photo is not None else "",
            showing=Showing(photo=photo.learned if photo is not None else None),
            rest_s=REST_S,
            steps=ghost.finish_steps if ghost is not None else None,
            longest_s=ghost.end_s if ghost is not None else None,
            first_number=self._next_number,
        )

    def _new_sides(self, requests: Sequence[RunWorkload]) -> tuple[RaceSide, ...]:
        choices = self.choices
        left, right = (
            RaceSide(entry.label, self._named_run(one))
            for entry, one in zip(choices.chosen, requests, strict=True)
        )
        return left if choices.ghost is None else choices.ghost, right

    def _named_run(self, request: RunWorkload) -> Run:
        """Return a run that knows its device's name: without a result, the engine gives none."""
        run = Run(request)
        row = self._studio.board.at(request.device)
        if row is not None:
            run.device_name, run.card = row.name, row.identity
        return run

    def _on_step_begun(self) -> None:
        self.clock.set(0.0)
        self.race_changed.emit()

    def _on_event_received(self, event: Event, runs: tuple[Run, ...]) -> None:
        for side in self.sides:
            if side.run in runs:
                self._advance(side, event)

    def _advance(self, side: RaceSide, event: Event) -> None:
        side.track.add(event)
        if isinstance(event, FrameReady):
            # Both sides are shown at one time, up to which both of them are known.
            live = (one.end_s for one in self.sides if not one.is_over)
            self.clock.follow(min(live, default=side.end_s))
        elif not isinstance(event, (FramesOpened, SamplesMeasured)):
            if side.run.snippet:
                self._studio.snippets.show(side.run.snippet, RACE)
            self.race_changed.emit()

    def _on_finished(self) -> None:
        self._studio.wakefulness.need(RACE, needed=False)
        self.choices.is_locked = False
        self.verdict = judge(self._raced, [side.run for side in self.sides])
        finished = self.verdict.finished
        if all(side.run.state is RunState.FINISHED for side in self.sides):
            leader = self.sides[finished.leader].label if finished.leader is not None else ""
            self._leaders.setdefault(self._question, {})[finished.size] = leader
        self.clock.now_s = first_finish_s(self.sides)
        if self._runs_again:
            self._runs_again = False
            self.start()
            return
        self._emit_all()

    def _on_size_changed(self) -> None:
        """Once there was a race, the lever runs the next one."""
        if self.sides:
            self._settling.start(_SETTLE_MS)

    def _on_settled(self) -> None:
        """Run at the size at which the lever came to rest."""
        if self.state is WorkState.IDLE:
            self.start()
            return
        self.stop()
        self._runs_again = True

    def _on_question_changed(self) -> None:
        """Go back to the question, for other choices."""
        self._settling.stop()
        self.clock.end_replay()
        self.sides, self.verdict, self.clock.now_s = (), None, 0.0
        self._emit_all()

    def _emit_all(self) -> None:
        self.race_changed.emit()
        self.moment_changed.emit()
