"""A race: its two sides in turns, a ghost beside a live one, and the result."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.device_name import is_cpu, pc_of
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, Showing
from gpu_studio.core.messages.run_messages import SamplesMeasured
from gpu_studio.core.notice import Notice
from gpu_studio.core.race.contestant import is_raceable, race_requests
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S, PICTURES
from gpu_studio.core.race.verdict import judge
from gpu_studio.model.pages import RACE
from gpu_studio.model.race import race_words
from gpu_studio.model.race.race_choices import RaceChoices
from gpu_studio.model.race.race_side import RaceSide
from gpu_studio.model.run_queue import QueueStep, RunQueue, WorkState, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadDescription
    from gpu_studio.core.race.verdict import Verdict
    from gpu_studio.model.pcs import Pcs
    from gpu_studio.model.race.race_photo import RacePhoto
    from gpu_studio.model.race.race_words import SideWords
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
        self._timer.timeout.connect(self._go_on)

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

    def _go_on(self) -> None:
        now_s = self.now_s + self._step_s
        if now_s >= self._last_s:
            self.end_replay()
        else:
            self.set(now_s)


# The window draws a frame while nothing is timed.
REST_S = 0.01
# The lever may pass several sizes on its way.
_SETTLE_MS = 400


class LeadChange(NamedTuple):
    """The first size at which another contestant leads, and that contestant's name."""

    size: int
    name: str

    def words(self, picture: WorkloadDescription) -> str:
        """Return the change as a sentence."""
        size = picture.size_text.replace("{size}", str(self.size))
        return f"{self.name} leads from {size} on."


class _Steps:
    """A plan of one step for each PC: the sides of a PC that are not over take turns.

    The next PC's side races against those of the one before: to their finish line, and not longer
    than the first of them needed. So cards come first, which are faster as a rule.
    """

    def __init__(self, sides: Sequence[RaceSide], pcs: Pcs) -> None:
        self._pcs = pcs
        self._before: list[RaceSide] = []
        self._waiting: list[list[RaceSide]] = []
        live = [side for side in sides if not side.is_over]
        for side in sorted(live, key=lambda one: is_cpu(one.run.request.device)):
            group = next((one for one in self._waiting if _pc(one[0]) == _pc(side)), None)
            if group is None:
                self._waiting.append([side])
            else:
                group.append(side)
        for group in self._waiting:
            group.sort(key=live.index)

    def next_step(self, runs: Sequence[Run], last: Event | None) -> QueueStep | None:
        if not self._waiting:
            return None
        group = self._waiting.pop(0)
        reached = [side for side in self._before if side.is_reached]
        for side in group if reached else ():
            side.run.request = msgspec.structs.replace(
                side.run.request,
                calls=reached[0].finish_steps,
                longest_s=min(one.end_s for one in reached),
            )
        self._before += group
        session = self._pcs.session_of(group[0].run.request.device)
        return step_of([side.run for side in group], session)


def _pc(side: RaceSide) -> str:
    return pc_of(side.run.request.device)


class Race(QObject):
    """Runs one race at a time, and remembers who led at each size.

    Signals:
        begun(): a race was started.
        choices_changed(): another picture, size, photo or contestant is chosen or can be.
        race_changed(): the race began, progressed or ended; its words changed.
        moment_changed(): the race's clock stands at another time: other frames are to be shown.

    Attributes:
        choices: what the next race is to be.
        clock: the time of the race that is shown.
        sides: the left and the right side of the race; empty before the first.
        verdict: the result; None before the end.
    """

    begun = Signal()
    choices_changed = Signal()
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
        self._queue.step_begun.connect(self._begin_step)
        self._queue.event_received.connect(self._receive)
        self._queue.finished.connect(self._finish)
        self._settling = QTimer(self)
        self._settling.setSingleShot(True)
        self._settling.timeout.connect(self._run_again)
        self.choices.changed.connect(self.choices_changed)
        self.choices.size_changed.connect(self._size_changed)
        self.choices.question_changed.connect(self._show_nothing)
        self.clock.changed.connect(self.moment_changed)
        self.clock.replay_changed.connect(self.race_changed)

    @property
    def state(self) -> WorkState:
        """The state of the race."""
        return self._queue.state

    @property
    def can_run(self) -> bool:
        """Whether a race can start: one does not run, and the engines are known."""
        return not self.state.is_busy and not self.what_is_missing

    @property
    def what_is_missing(self) -> str:
        """The reason why no race can start yet; empty once its engines are known."""
        ghost = self.choices.ghost
        entries = self.choices.chosen[1:] if ghost is not None else self.choices.chosen
        pcs = [self._studio.pcs.of(entry.contestant.device) for entry in entries]
        return next(filter(None, (pc.session.what_is_missing for pc in pcs)), "")

    @property
    def can_run_again(self) -> bool:
        """Whether `start` would repeat the race that is shown; not one from a file."""
        is_own = bool(self.sides) and not any(side.origin for side in self.sides)
        return is_own and self.can_run and not self.choices.problem

    @property
    def raced(self) -> WorkloadDescription:
        """The picture of the current race, or else the chosen one."""
        return self._raced if self.sides else self.choices.picture

    @property
    def first_finish_s(self) -> float:
        """The time at which the first side reached the finish line, or else the last time."""
        ends = [side.end_s for side in self.sides if side.is_reached]
        return min(ends) if ends else self._last_s

    def is_result(self, now_s: float) -> bool:
        """Whether a time of the race's clock is that of the result."""
        is_over = self.verdict is not None and not self.state.is_busy
        return is_over and now_s + 1e-6 >= self.first_finish_s

    def pace_of(self, side: RaceSide, now_s: float) -> float:
        """Return a side's steps a second until a time; 0 before the first step.

        With the result, it is the pace of the whole run, as the sentence has it: the slower side
        may have ended a step or a turn after the moment that is shown.
        """
        result = side.run.result
        outcome = result.outcome if result is not None else None
        if outcome is not None and outcome.seconds and self.is_result(now_s):
            return outcome.steps / outcome.seconds
        frame = side.at(now_s)
        return race_words.pace_of(frame) if frame is not None else 0.0

    @property
    def notice(self) -> Notice:
        """The headline, with the sentence below it as its detail."""
        if self.state is WorkState.STOPPING:
            return Notice("Stopping…")
        if self.state.is_busy:
            return race_words.progress(self._raced, self.sides, self.clock.now_s)
        if self.verdict is not None:
            crossover = self.crossover
            words = "" if crossover is None else crossover.words(self.choices.picture)
            shown = [side.entry.label for side in self.sides]
            again = self.can_run_again and self.verdict.is_kept_busy
            return race_words.result(self.verdict, shown, words, can_run_again=again)
        choices = self.choices
        names = [entry.label for entry in choices.chosen]
        is_across = len({pc_of(entry.contestant.device) for entry in choices.chosen}) > 1
        return race_words.invitation(choices.picture, names, DEFAULT_BUDGET_S, is_across=is_across)

    @property
    def leaders(self) -> dict[int, str]:
        """Who led at each size, by the side's label; empty where neither did."""
        return self._leaders.get(self.choices.question, {})

    @property
    def crossover(self) -> LeadChange | None:
        """Where the leader changes; None if the races so far do not say."""
        known = sorted((size, name) for size, name in self.leaders.items() if name)
        for (_, one), (size, other) in itertools.pairwise(known):
            if one != other:
                return LeadChange(size, other)
        return None

    def words_of(self, side: int) -> SideWords:
        """Return the state of a side in a few words."""
        shown = self.sides[side] if self.sides else None
        if shown is None and side == 0:
            shown = self.choices.ghost
        busy = self.state.is_busy or self.clock.is_replaying
        is_beaten = any(one.is_reached for one in self.sides if one is not shown)
        return race_words.side_words(shown, self.clock.now_s, is_running=busy, is_beaten=is_beaten)

    def start(self) -> None:
        """Run the chosen race; does nothing while one runs."""
        choices = self.choices
        if not self.can_run or choices.problem:
            return
        self.clock.end_replay()
        self._raced, self._question = choices.picture, choices.question
        runs = [self._named_run(one) for one in self._requests()]
        sides = [RaceSide(entry, run) for entry, run in zip(choices.chosen, runs, strict=True)]
        if choices.ghost is not None:
            sides[0] = choices.ghost
        self.sides, self.verdict = tuple(sides), None
        choices.is_locked = True
        self._studio.wakefulness.need(RACE, needed=True)
        self.begun.emit()
        self._queue.start(_Steps(sides, self._studio.pcs), self._studio.session)

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
            finishes_s = [side.end_s for side in self.sides if side.is_reached]
            # The result shows the first finish: nobody's way goes on after the last one.
            self.clock.replay(max(finishes_s, default=self._last_s), self.first_finish_s)

    def show_recorded(self, sides: tuple[RaceSide, RaceSide]) -> None:
        """Show a recorded race at its end; the next race is against its fastest contestant.

        Args:
            sides: both over, with results of the same picture and size.
        """
        request = sides[0].run.request
        ghost = min(sides, key=lambda side: side.end_s)
        raceable = ghost if is_raceable(ghost.run.result) else None
        if not self.choices.race_against(raceable, request.workload, request.size):
            return
        self._raced, self.sides = self.choices.picture, sides
        self.verdict = judge(self._raced, [side.run for side in sides])
        self.clock.now_s = self.first_finish_s
        self._emit_all()

    @property
    def _last_s(self) -> float:
        return max((side.end_s for side in self.sides), default=0.0)

    def _requests(self) -> list[RunWorkload]:
        choices, picture = self.choices, self._raced
        photo = choices.photo.identity if picture.name == "learn" else ""
        ghost = choices.ghost
        requests = race_requests(
            picture,
            choices.size,
            [entry.contestant for entry in choices.chosen],
            DEFAULT_BUDGET_S,
            photo=photo,
            seeds=choices.used_seeds,
            showing=Showing(photo=choices.photo.learned if photo else None),
            rest_s=REST_S,
            steps=ghost.finish_steps if ghost is not None else None,
            longest_s=ghost.end_s if ghost is not None else None,
            first_number=self._next_number,
        )
        self._next_number += len(requests)
        return requests

    def _named_run(self, request: RunWorkload) -> Run:
        """Return a run that knows its device's name: without a result, the engine gives none."""
        run = Run(request)
        row = self._studio.board.at(request.device)
        if row is not None:
            run.device_name, run.card = row.name, row.identity
        return run

    def _begin_step(self) -> None:
        self.clock.set(0.0)
        self.race_changed.emit()

    def _receive(self, event: Event, runs: tuple[Run, ...]) -> None:
        for side in self.sides:
            if side.run in runs:
                self._advance(side, event)

    def _advance(self, side: RaceSide, event: Event) -> None:
        if isinstance(event, FrameReady):
            side.add(event)
            # Both sides are shown at one time, up to which both of them are known.
            step = self._queue.step
            running = step.runs if step is not None else ()
            live = (one.end_s for one in self.sides if one.run in running and not one.is_over)
            self.clock.follow(min(live, default=side.end_s))
        elif not isinstance(event, (FramesOpened, SamplesMeasured)):
            if side.run.snippet:
                self._studio.snippets.show(side.run.snippet, RACE)
            self.race_changed.emit()

    def _finish(self) -> None:
        self._studio.wakefulness.need(RACE, needed=False)
        self.choices.is_locked = False
        self.verdict = judge(self._raced, [side.run for side in self.sides])
        finished = self.verdict.finished
        is_known = all(side.run.state is RunState.FINISHED for side in self.sides)
        if is_known:
            leader = self.sides[finished.leader].entry.label if finished.leader is not None else ""
            self._leaders.setdefault(self._question, {})[finished.size] = leader
        self.clock.now_s = self.first_finish_s
        if self._runs_again:
            self._runs_again = False
            self.start()
            return
        self._emit_all()

    def _size_changed(self) -> None:
        """Once there was a race, the lever runs the next one."""
        if self.sides:
            self._settling.start(_SETTLE_MS)

    def _run_again(self) -> None:
        """Run at the size at which the lever came to rest."""
        if self.state is WorkState.IDLE:
            self.start()
            return
        self.stop()
        self._runs_again = True

    def _show_nothing(self) -> None:
        """Go back to the question, for other choices."""
        self._settling.stop()
        self.clock.end_replay()
        self.sides, self.verdict, self.clock.now_s = (), None, 0.0
        self._emit_all()

    def _emit_all(self) -> None:
        self.choices_changed.emit()
        self.race_changed.emit()
        self.moment_changed.emit()
