"""A race: its choices, its two sides in turn, the ghost beside the live one, and the result."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.messages.race_messages import MOST_SEEDS, Showing
from gpu_studio.core.messages.run_messages import RunAtOnce
from gpu_studio.core.notice import Notice
from gpu_studio.core.race.contestant import race_requests
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S, PICTURES
from gpu_studio.core.race.verdict import judge
from gpu_studio.model.race import race_words
from gpu_studio.model.race.race_entries import RaceEntry, first_contestants, race_entries
from gpu_studio.model.race.race_side import RaceSide
from gpu_studio.model.snippets import RACE
from gpu_studio.model.work_state import WorkState

if TYPE_CHECKING:
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadDescription
    from gpu_studio.core.race.contestant import Contestant
    from gpu_studio.core.race.verdict import Verdict
    from gpu_studio.model.engine_session import Reply
    from gpu_studio.model.race.race_photo import RacePhoto
    from gpu_studio.model.race.race_words import SideWords
    from gpu_studio.model.studio import Studio

# The window draws a frame while nothing is timed.
REST_S = 0.01
# The lever may pass several sizes on its way.
_SETTLE_MS = 400
_REPLAY_MS = 50
_LONGEST_REPLAY_S = 12.0


class LeadChange(NamedTuple):
    """The first size at which another contestant leads, and that contestant's name."""

    size: int
    name: str


class Race(QObject):
    """Runs one race at a time, and remembers who led at each size.

    Signals:
        choices_changed(): another picture, size, photo or contestant is chosen or can be.
        race_changed(): the race began, progressed or ended; its words changed.
        moment_changed(): the race's clock stands at another time: other frames are to be shown.
    """

    choices_changed = Signal()
    race_changed = Signal()
    moment_changed = Signal()

    def __init__(self, studio: Studio, photo: RacePhoto, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self.photo = studio, photo
        self._state = WorkState.IDLE
        self._picture_name = PICTURES[0].name
        self._sizes: dict[str, int] = {}
        self._seeds: tuple[tuple[float, float], ...] = ()
        self._chosen: tuple[Contestant, Contestant] | None = None
        self._ghost: RaceSide | None = None
        self._wants_both = False
        self._photo_identity = photo.identity
        self._sides: tuple[RaceSide, ...] = ()
        self._raced: WorkloadDescription = PICTURES[0]
        self._reply: Reply | None = None
        self._clock_s = 0.0
        self._verdict: Verdict | None = None
        self._leaders: dict[tuple[object, ...], dict[int, str]] = {}
        self._next_number = 1
        self._runs_again = False
        self._settling = self._timer(self._run_again)
        self._settling.setSingleShot(True)
        self._replay = self._timer(self._replay_on)
        self._replay_step_s = 0.0
        photo.changed.connect(self._photo_changed)
        studio.session.engine_described.connect(self.choices_changed)
        studio.board.changed.connect(self.choices_changed)

    # ── choices ──────────────────────────────────────────────────────────────────────────────

    @property
    def pictures(self) -> tuple[WorkloadDescription, ...]:
        """The pictures that can be drawn."""
        engine = self._studio.session.description
        return (engine.pictures if engine is not None else ()) or PICTURES

    @property
    def picture(self) -> WorkloadDescription:
        """The chosen picture."""
        named = (one for one in self.pictures if one.name == self._picture_name)
        return next(named, self.pictures[0])

    @property
    def size(self) -> int:
        """The chosen size."""
        picture = self.picture
        assert picture.race is not None
        return self._sizes.get(picture.name, picture.race.default_size)

    @property
    def entries(self) -> tuple[RaceEntry, ...]:
        """The contestants that can be chosen."""
        engine = self._studio.session.description
        return race_entries(self.picture, self._studio.board, engine)

    @property
    def chosen(self) -> tuple[RaceEntry, RaceEntry]:
        """The contestants of the next race; a ghost from elsewhere stands at the left."""
        entries = {entry.contestant: entry for entry in self.entries}
        engine = self._studio.session.description
        chosen = self._chosen
        if chosen is None or any(one not in entries for one in chosen):
            chosen = first_contestants(tuple(entries.values()), engine)
        left, right = (entries[one] for one in chosen)
        return (self._ghost.entry if self._ghost is not None else left), right

    @property
    def seeds(self) -> tuple[tuple[float, float], ...]:
        """Where the pattern begins to grow; empty for the usual places."""
        return self._seeds

    @property
    def ghost(self) -> RaceSide | None:
        """The run from elsewhere that the next race is against."""
        return self._ghost

    @property
    def is_at_once(self) -> bool:
        """Whether both contestants of the next race run at the same time, for show."""
        return self._wants_both and self._ghost is None

    @property
    def can_run(self) -> bool:
        """Whether a race can start: one does not run, and the engine is known."""
        return not self._state.is_busy and self._studio.session.description is not None

    @property
    def problem(self) -> str:
        """Why the chosen picture cannot be drawn here; empty if it can."""
        return self.picture.skipped

    def choose_picture(self, name: str) -> None:
        """Choose what is drawn."""
        if name != self._picture_name and not self._state.is_busy:
            self._picture_name = name
            self._ghost = None
            self._show_nothing()

    def choose_size(self, size: int) -> None:
        """Move the size lever; once there was a race, this runs the next one."""
        if size == self.size:
            return
        self._sizes[self.picture.name] = size
        self.choices_changed.emit()
        if self._sides:
            self._settling.start(_SETTLE_MS)

    def choose_contestant(self, side: int, contestant: Contestant) -> None:
        """Choose who runs on a side, 0 for the left one."""
        chosen = [entry.contestant for entry in self.chosen]
        if side == 0:
            self._ghost = None
        chosen[side] = contestant
        self._chosen = (chosen[0], chosen[1])
        if not self._state.is_busy:
            self._show_nothing()

    def choose_at_once(self, is_at_once: bool) -> None:
        """Let both contestants run at the same time, for show, or in turn; not against a ghost."""
        if is_at_once is not self._wants_both and not self._state.is_busy:
            self._wants_both = is_at_once
            self._show_nothing()

    def add_seed(self, x: float, y: float) -> None:
        """Let the pattern also begin to grow at a place, as shares of width and height."""
        if not self._state.is_busy and len(self._seeds) < MOST_SEEDS:
            self._seeds = (*self._seeds, (min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)))
            self._show_nothing()

    def clear_seeds(self) -> None:
        """Let the pattern begin at the usual places."""
        self._seeds = ()
        self._show_nothing()

    def race_against(self, ghost: RaceSide, picture: str, size: int) -> None:
        """Let the next race be against a run from elsewhere, at its picture and size."""
        if self._state.is_busy or all(one.name != picture for one in self.pictures):
            return
        self._picture_name = picture
        self._sizes[picture] = size
        self._ghost = ghost
        self._show_nothing()

    def show_recorded(self, sides: tuple[RaceSide, RaceSide]) -> None:
        """Show a recorded race at its end; the next race is against its fastest contestant.

        Args:
            sides: both over, with results of the same picture and size.
        """
        request = sides[0].run.request
        named = [one for one in self.pictures if one.name == request.workload]
        if self._state.is_busy or not named:
            return
        self._settling.stop()
        self._replay.stop()
        self._picture_name, self._raced = request.workload, named[0]
        self._sizes[request.workload] = request.size
        self._sides = sides
        self._verdict = judge(self._raced, [side.run for side in sides])
        is_for_show = self._verdict.finished.at_once
        self._ghost = None if is_for_show else min(sides, key=lambda side: side.end_s)
        self._clock_s = self.first_finish_s
        self._tell_all()

    # ── the race ─────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> WorkState:
        """The state of the race."""
        return self._state

    @property
    def sides(self) -> tuple[RaceSide, ...]:
        """The left and the right side of the race; empty before the first."""
        return self._sides

    @property
    def raced(self) -> WorkloadDescription:
        """The picture of the current race, or else the chosen one."""
        return self._raced if self._sides else self.picture

    @property
    def clock_s(self) -> float:
        """The time of the race that is shown."""
        return self._clock_s

    @property
    def verdict(self) -> Verdict | None:
        """The result; None before the end."""
        return self._verdict

    @property
    def is_replaying(self) -> bool:
        """Whether the race that is over is shown again."""
        return self._replay.isActive()

    @property
    def first_finish_s(self) -> float:
        """The time at which the first side reached the finish line, or else the last time.

        For show it is always the last time: neither side is shown as the first.
        """
        ends = [side.end_s for side in self._sides if side.is_reached]
        if any(side.run.is_for_show for side in self._sides):
            return max(side.end_s for side in self._sides)
        return min(ends) if ends else max((side.end_s for side in self._sides), default=0.0)

    @property
    def notice(self) -> Notice:
        """The headline, with the sentence below it as its detail."""
        if self._state is WorkState.STOPPING:
            return Notice("Stopping…")
        if self._state.is_busy:
            return race_words.progress(self._raced, self._sides)
        if self._verdict is not None:
            crossover = self.crossover
            words = "" if crossover is None else self._crossover_words(crossover)
            shown = [side.entry.label for side in self._sides]
            return race_words.result(self._verdict, shown, words)
        names = [entry.label for entry in self.chosen]
        return race_words.invitation(
            self.picture, names, DEFAULT_BUDGET_S, is_at_once=self.is_at_once
        )

    @property
    def leaders(self) -> dict[int, str]:
        """Who led at each size, by the side's label; empty where neither did."""
        return self._leaders.get(self._question, {})

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
        shown = self._sides[side] if self._sides else None
        if shown is None and side == 0:
            shown = self._ghost
        busy = self._state.is_busy or self.is_replaying
        return race_words.side_words(shown, self._clock_s, is_running=busy)

    def start(self) -> None:
        """Run the chosen race; does nothing while one runs."""
        if not self.can_run or self.problem:
            return
        self._replay.stop()
        chosen = self.chosen
        picture = self._raced = self.picture
        photo = self.photo.identity if picture.name == "learn" else ""
        path = str(self.photo.path) if photo else ""
        requests = race_requests(
            picture,
            self.size,
            [entry.contestant for entry in chosen],
            DEFAULT_BUDGET_S,
            photo=photo,
            seeds=self._seeds if picture.name == "grow" else (),
            showing=Showing(photo_path=path),
            rest_s=REST_S,
            first_number=self._next_number,
            at_once=self.is_at_once,
        )
        self._next_number += len(requests)
        runs = [self._named_run(one) for one in requests]
        fresh = [RaceSide(entry, run) for entry, run in zip(chosen, runs, strict=True)]
        if self._ghost is not None:
            fresh[0] = self._ghost
        self._sides = tuple(fresh)
        self._clock_s, self._verdict = 0.0, None
        self._state = WorkState.RUNNING
        if self.is_at_once:
            self._submit(RunAtOnce(runs=tuple(requests)))
        else:
            self._run_next()
        self.race_changed.emit()
        self.moment_changed.emit()

    def stop(self) -> None:
        """Stop the race; the frames so far are kept."""
        self._runs_again = False
        if self._state is WorkState.RUNNING and self._reply is not None:
            self._state = WorkState.STOPPING
            self.race_changed.emit()
            self._reply.stop()

    def replay(self) -> None:
        """Show the race that is over again, both sides at once; a second call ends that."""
        if self._state.is_busy or not self._sides:
            return
        if self.is_replaying:
            self._end_replay()
            return
        last_s = max(side.end_s for side in self._sides)
        speed = max(last_s / _LONGEST_REPLAY_S, 1.0)
        self._replay_step_s = speed * _REPLAY_MS / 1000
        self._clock_s = 0.0
        self._replay.start(_REPLAY_MS)
        self.race_changed.emit()
        self.moment_changed.emit()

    def _named_run(self, request: RunWorkload) -> Run:
        """Return a run that knows its device's name: without a result, the engine gives none."""
        run = Run(request)
        row = self._studio.board.at(request.device)
        run.device_name = row.name if row is not None else ""
        return run

    def _run_next(self) -> None:
        side = next(one for one in self._sides if not one.is_over)
        self._clock_s = 0.0
        self._submit(side.run.request)

    def _submit(self, request: RunWorkload | RunAtOnce) -> None:
        self._reply = self._studio.session.submit(request)
        self._reply.event_received.connect(self._receive)
        self._reply.finished.connect(self._end_of_side)

    @property
    def _live(self) -> RaceSide | None:
        return next((side for side in self._sides if not side.is_over), None)

    def _receive(self, event: Event) -> None:
        for live in self._sides:
            if not live.is_over and (live is self._live or live.run.is_for_show):
                self._receive_for(live, event)

    def _receive_for(self, live: RaceSide, event: Event) -> None:
        phase = live.run.phase, live.run.state
        if live.take(event):
            self._clock_s = max(self._clock_s, live.end_s) if live.run.is_for_show else live.end_s
            self.moment_changed.emit()
        if (live.run.phase, live.run.state) != phase:
            if live.run.snippet:
                self._studio.snippets.show(live.run.snippet, RACE)
            self.race_changed.emit()

    def _end_of_side(self) -> None:
        self._reply = None
        is_going_on = self._state is WorkState.RUNNING and all(
            side.run.state in (RunState.FINISHED, RunState.WAITING) for side in self._sides
        )
        if is_going_on and self._live is not None:
            self._run_next()
            self.race_changed.emit()
            self.moment_changed.emit()
        else:
            self._end()

    def _end(self) -> None:
        self._state = WorkState.IDLE
        self._verdict = judge(self._raced, [side.run for side in self._sides])
        leader = self._verdict.finished.leader
        is_known = all(side.run.state is RunState.FINISHED for side in self._sides)
        if is_known and not self._verdict.finished.at_once:
            known = self._leaders.setdefault(self._question_of_race(), {})
            size = self._verdict.finished.size
            known[size] = self._sides[leader].entry.label if leader is not None else ""
        self._clock_s = self.first_finish_s
        if self._runs_again:
            self._runs_again = False
            self.start()
            return
        self._tell_all()

    def _run_again(self) -> None:
        """Run at the size at which the lever came to rest."""
        if self._state is WorkState.IDLE:
            self.start()
            return
        self.stop()
        self._runs_again = True

    def _replay_on(self) -> None:
        self._clock_s += self._replay_step_s
        if self._clock_s >= max(side.end_s for side in self._sides):
            self._end_replay()
        self.moment_changed.emit()

    def _end_replay(self) -> None:
        self._replay.stop()
        self._clock_s = self.first_finish_s
        self.race_changed.emit()
        self.moment_changed.emit()

    def _show_nothing(self) -> None:
        """Go back to the question, for other choices."""
        self._settling.stop()
        self._replay.stop()
        self._sides, self._verdict, self._clock_s = (), None, 0.0
        self._tell_all()

    def _tell_all(self) -> None:
        self.choices_changed.emit()
        self.race_changed.emit()
        self.moment_changed.emit()

    def _photo_changed(self) -> None:
        """Ask the question again for another photo, but not if one was only opened."""
        if self.photo.identity != self._photo_identity:
            self._photo_identity = self.photo.identity
            if not self._state.is_busy:
                self._show_nothing()

    @property
    def _question(self) -> tuple[object, ...]:
        """What must be the same for two races to differ only in their size."""
        return (
            self.picture.name,
            tuple(entry for entry in self.chosen),
            self.photo.identity,
            self._seeds,
        )

    def _question_of_race(self) -> tuple[object, ...]:
        return (
            self._raced.name,
            tuple(side.entry for side in self._sides),
            self.photo.identity,
            self._seeds,
        )

    def _crossover_words(self, crossover: LeadChange) -> str:
        size = self.picture.size_text.replace("{size}", str(crossover.size))
        return f"{crossover.name} leads from {size} on."

    def _timer(self, slot: object) -> QTimer:
        timer = QTimer(self)
        timer.timeout.connect(slot)
        return timer
