"""The Race page: what the next race is to be, its two sides in turns, and the result."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from PySide6.QtCore import QTimer, Signal

from gpu_studio.core.benchmark.run import Run, RunState
from gpu_studio.core.device_name import CPU, is_cpu, name_at, pc_of
from gpu_studio.core.devices.adapters import is_adapter
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceTraits, Showing
from gpu_studio.core.messages.run_messages import SamplesMeasured, WorkloadDescription
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.race.contestant import Contestant, race_requests, usual_contestants
from gpu_studio.core.race.picture_file import Photo
from gpu_studio.core.race.pictures import (
    DEFAULT_BUDGET_S,
    GROW,
    LEARN,
    PICTURES,
    lake,
    raced_code,
)
from gpu_studio.core.race.side import RaceSide, first_finish_s
from gpu_studio.core.race.stage_view import (
    Moment,
    PaintOrder,
    StageView,
    invitation,
    picture_order,
    result_notice,
)
from gpu_studio.core.race.verdict import judge
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.units import counted, format_size, local_now
from gpu_studio.model.own_code import OwnCodeModel
from gpu_studio.model.page_model import PageModel
from gpu_studio.model.pages import RACE
from gpu_studio.model.race.race_files import OpenedRace, RaceFiles
from gpu_studio.model.run_queue import RunQueue, WorkState, step_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import OwnCode, RunWorkload
    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.core.race.verdict import Verdict
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.studio import Studio

OWN_NAME = "Mountain lake"
REST_S = 0.01  # the window draws a frame while nothing is timed
_SETTLE_MS = 400  # the lever may pass several sizes on its way
_WORDS_MS = 250  # words that change faster cannot be read
_REPLAY_MS = 50
# Of what is known, this share is caught up with at each frame. Nearer, there is nothing more to
# see; further ahead, the frames come too seldom to run evenly.
_FOLLOWS, _NEAR_S, _FAR_S = 0.15, 0.02, 1.0
_LONGEST_REPLAY_S = 12.0
_OTHER_PICTURES = (
    "This race was run by an older version of GPU Studio, which drew other pictures: no race "
    "against it would be fair."
)
_NO_RACE = (
    "This file has no race with a result. To replay the runs of a recording, drop it on the "
    "Benchmark tab."
)
OWN = "own"
"""The choice of the user's own code as a picture."""
_NO_CODE = WorkloadDescription(
    name=OWN, title="your code", sentence="Your own code, run by run.", dtypes=("float32",),
    sizes=(1,), throughput_unit="", size_title="One size",
    skipped="Drop a .py on the window and press Run. Then press Race it, and it races here.",
    race=RaceTraits(limit="", step_title="runs", default_size=1),
)  # fmt: skip
_log = logging.getLogger(__name__)


class RaceEntry(NamedTuple):
    """A contestant to choose.

    Attributes:
        contestant: what runs, on a device by its name in this engine.
        label: its name in a list and on its picture.
        identity: its device's permanent name; empty for a run from elsewhere.
    """

    contestant: Contestant
    label: str
    identity: str = ""

    @property
    def choice(self) -> Contestant:
        """The contestant on its device by the permanent name: the same in every engine."""
        return msgspec.structs.replace(self.contestant, device=self.identity)


class RaceChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What the next race is to be.

    ``picture`` is the name of what is drawn, ``size`` 0 its usual one. ``left`` and ``right`` have
    the permanent names of their devices, empty for a ghost; None is the usual contestant. ``photo``
    is as in `RaceParameters`.
    """

    picture: str = PICTURES[0].name
    size: int = 0
    left: Contestant | None = None
    right: Contestant | None = None
    photo: str = ""


class Race(PageModel):
    """Runs one race at a time, and remembers who led at each size.

    Signals:
        moment_changed(): the race's clock stands at another time: other frames are to be shown.

    Attributes:
        files: opens and saves.
        now_s: the time of the race that is shown.
        sides: the left and the right side of the race; empty before the first.
        verdict: the result; None before the end.
        outcome: what became of a file.
    """

    moment_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(RaceChoices(), parent)
        self.studio = studio
        self.files = RaceFiles(studio, self)
        self.files.opened.connect(self._on_opened)
        self.files.notified.connect(self.note)
        self.now_s = self._step_s = self._last_s = 0.0
        self.sides: tuple[RaceSide, ...] = ()
        self.verdict: Verdict | None = None
        self.outcome = Notice()
        self.own = OwnCodeModel(studio, self)
        self._photo: Photo | None = None
        self._ghost: RaceSide | None = None
        self._raced: WorkloadDescription = PICTURES[0]
        self._question: tuple[object, ...] = ()
        self._leaders: dict[tuple[object, ...], dict[int, str]] = {}
        self._next_number = 1
        self._runs_again = False
        self._queue = RunQueue(self)
        self._queue.step_begun.connect(self._on_step_begun)
        self._queue.event_received.connect(self._on_event_received)
        self._queue.finished.connect(self._on_finished)
        self._settling = QTimer(self, singleShot=True, interval=_SETTLE_MS)
        self._settling.timeout.connect(self._on_settled)
        self._replaying = QTimer(self, interval=_REPLAY_MS)
        self._replaying.timeout.connect(self._on_replayed)
        self._soon = QTimer(self, singleShot=True, interval=_WORDS_MS)
        self._soon.timeout.connect(self.changed)
        session, self.adapters = studio.session, studio.adapters
        self.follow(
            session.state_changed, session.engine_described, studio.board.changed,
            self.adapters.changed,
        )  # fmt: skip

    # ── choices ──────────────────────────────────────────────────────────────────────────────

    @property
    def pictures(self) -> tuple[WorkloadDescription, ...]:
        """The pictures that can be drawn."""
        engine = self.studio.session.description
        return (engine.pictures if engine is not None else ()) or PICTURES

    @property
    def picture(self) -> WorkloadDescription:
        """The chosen picture."""
        if self.is_own:
            return raced_code(self.own.workload) if self.own.code is not None else _NO_CODE
        named = (one for one in self.pictures if one.name == self.choices.picture)
        return next(named, self.pictures[0])

    @property
    def is_own(self) -> bool:
        """Whether the user's own code is chosen."""
        return bool(self.choices.picture == OWN)

    @property
    def learns(self) -> bool:
        """Whether the chosen picture is learned from a photo."""
        return self.picture.name == LEARN.name

    @property
    def size(self) -> int:
        """The chosen size."""
        assert self.picture.race is not None
        return self.choices.size or self.picture.race.default_size

    @property
    def entries(self) -> tuple[RaceEntry, ...]:
        """The contestants of all PCs: the usual precision first, the CPUs before the cards."""
        board, picture = self.studio.board, self.picture
        entries: list[RaceEntry] = []
        for dtype in picture.dtypes:
            suffix = "" if dtype == picture.dtypes[0] else f", {dtype}"
            for cpu in board.cpus:
                # Of a PC that is not connected; own code runs here.
                if cpu.address is None or (self.is_own and cpu.pc):
                    continue
                for threads, label in self._cpu_threads(cpu.address):
                    contestant = Contestant(device=cpu.address, threads=threads, dtype=dtype)
                    name = name_at(cpu.pc, label + suffix)
                    entries.append(RaceEntry(contestant, name, cpu.identity))
            for card in board.usable_cards:
                if self.is_own and card.pc:
                    continue
                contestant = Contestant(device=card.address or "", dtype=dtype)
                entries.append(RaceEntry(contestant, card.label + suffix, card.identity))
        for row in board.adapters if picture.name == GROW.name else ():
            contestant = Contestant(device=row.address or "")
            entries.append(RaceEntry(contestant, row.label, row.identity))
        return tuple(entries)

    def choose_adapters(self, identity: str = "") -> None:
        """Choose what computes without PyTorch, and the picture that it draws.

        Args:
            identity: the adapter; the first one if empty.
        """
        found = identity or next((one.identity for one in self.adapters.adapters), "")
        if found and not self.state.is_busy:
            self.choose(picture=GROW.name)
            self.choose(right=Contestant(device=found))
            self.choose(left=Contestant(device=CPU))

    @property
    def left_out(self) -> str:
        """Why some cards cannot race, a line for each; empty if all can."""
        cards = self.studio.board.cards
        return "\n".join(f"{card.label}: {card.reason}" for card in cards if card.obstacle)

    @property
    def ghost(self) -> RaceSide | None:
        """The run from elsewhere that the next race is against."""
        left = self.choices.left
        return self._ghost if left is not None and not left.device else None

    @property
    def chosen(self) -> tuple[RaceEntry, RaceEntry]:
        """The contestants of the next race; a ghost from elsewhere stands at the left."""
        entries = {entry.choice: entry for entry in self.entries}
        usual = self._usual(tuple(entries.values()), pc="")
        left, right = self.choices.left, self.choices.right
        if self.ghost is not None:
            return _entry_of(self.ghost), entries.get(right or usual[1].choice, usual[1])
        if left in entries and right in entries:
            return entries[left], entries[right]
        return usual

    def contestants(self, side: int) -> list[tuple[str, Contestant | None]]:
        """Return the names of what can be chosen for a side, and what they stand for."""
        chosen = self.chosen[side]
        present = (self.choices.left, self.choices.right)[side]
        entries = self.entries if chosen in self.entries else (*self.entries, chosen)
        return [(one.label, present if one == chosen else one.choice) for one in entries]

    @property
    def photos(self) -> list[tuple[str, str]]:
        """The pictures to learn, and their identities."""
        own = [(OWN_NAME, "")]
        photo = self._photo
        return own if photo is None else [*own, (photo.name, photo.picture.identity)]

    @property
    def learned(self) -> PackedFrame | None:
        """The photo in a request; None for the picture of this program."""
        return self._photo.picture if self._photo is not None and self.choices.photo else None

    @property
    def question(self) -> tuple[object, ...]:
        """What must be the same for two races to differ only in their size."""
        return self.picture.name, self.chosen, self.choices.photo

    def suited(self, choices: RaceChoices) -> RaceChoices:
        """Return choices with a size of their picture, and both contestants on one PC."""
        before: RaceChoices = self.choices
        if self.state.is_busy:
            return msgspec.structs.replace(before, size=choices.size)
        if choices.picture != before.picture:
            left = choices.left
            if left is not None and left == before.left and not left.device:
                left = None  # a ghost leaves with its picture
            return msgspec.structs.replace(choices, size=0, left=left)
        pairs = ((choices.left, before.left), (choices.right, before.right))
        for side, (one, other) in enumerate(pairs):
            if one is not None and one != other and one.device:
                left, right = self._with_contestant(side, one)
                return msgspec.structs.replace(choices, left=left, right=right)
        return choices

    def on_chosen(self) -> None:
        """Go back to the question; if only the size changed, the lever runs the next race."""
        if (question := self.question) != self._question:
            self._question = question
            self._forget()
        elif self.sides:
            self._settling.start()

    def on_seen(self) -> None:
        """Say what was not saved when the window closed last."""
        if (notice := self.files.take_unsaved()).sentence:
            self.outcome = notice

    def _with_contestant(self, side: int, one: Contestant) -> list[Contestant]:
        """Return both contestants with another one on a side.

        Both take turns in one engine: with a device of another PC, the other side changes, too.
        """
        pair = [entry.choice for entry in self.chosen]
        pair[side], beside = one, pair[1 - side]
        if beside.device and not _share_engine(one, beside):
            usual = [entry.choice for entry in self._usual(self.entries, pc_of(one.device))]
            others = (*usual, Contestant(device=CPU))
            fitting = (other for other in others if other != one and _share_engine(one, other))
            pair[1 - side] = next(fitting, usual[0])
        return pair

    def _forget(self) -> None:
        """Forget the race that is over: the next one has another question."""
        self._settling.stop()
        self._replaying.stop()
        self.sides, self.verdict, self.now_s, self.outcome = (), None, 0.0, Notice()

    def _cpu_threads(self, address: str) -> list[tuple[int | None, str]]:
        engine = self.studio.pcs.session_of(address).description
        count = engine.cpu_threads if engine is not None else 0
        known = f"CPU, {counted(count, 'thread')}" if count else "CPU, all threads"
        return [(1, "CPU, 1 thread"), *([] if count == 1 else [(None, known)])]

    def _usual(self, entries: Sequence[RaceEntry], pc: str) -> tuple[RaceEntry, RaceEntry]:
        """Return the race that is offered first on a PC.

        On a single core without a card, two precisions race.
        """
        entries = [one for one in entries if pc_of(one.contestant.device) == pc]
        devices = dict.fromkeys(entry.contestant.device for entry in entries)
        cpu = next(filter(is_cpu, devices))
        threads = 2 if len(self._cpu_threads(cpu)) > 1 else 1
        cards, dtype = [one for one in devices if not is_cpu(one)], self.picture.dtypes[0]
        usual = [
            msgspec.structs.replace(one, dtype=dtype)
            for one in usual_contestants(cards, threads, cpu)
        ]
        first = [entry for one in usual for entry in entries if entry.contestant == one]
        others = [one for one in entries if one.contestant.dtype != usual[0].dtype]
        left, right, *_ = (*first, *others, *first)
        return left, right

    # ── what is shown ────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> WorkState:
        """The state of the race."""
        return self._queue.state

    @property
    def can_run(self) -> bool:
        """Whether a race can start: one does not run, and the engine is known."""
        return not (self.state.is_busy or self.picture.skipped or self.what_is_missing)

    @property
    def is_over(self) -> bool:
        """Whether there is a race that can be watched again and saved."""
        return bool(self.sides) and not self.state.is_busy

    @property
    def is_replaying(self) -> bool:
        """Whether the race that is over is shown again."""
        return self._replaying.isActive()

    @property
    def what_is_missing(self) -> str:
        """The reason why no race can start yet; empty once the engine is known."""
        if self._is_without_pytorch:
            return ""
        session = self.studio.session if self.is_own else self._session
        return session.what_is_missing

    @property
    def _is_without_pytorch(self) -> bool:
        """Whether a contestant is an adapter, or the CPU races where PyTorch is missing."""
        devices = [one.contestant.device for one in self.chosen]
        is_known = self.adapters.is_known and self.picture.name == GROW.name
        is_alone = bool(self.studio.session.absence) and not any(map(pc_of, devices))
        return any(map(is_adapter, devices)) or (is_known and is_alone)

    @property
    def _session(self) -> EngineSession:
        """The engine of the contestant that runs, in which both take turns."""
        if self._is_without_pytorch:
            return self.adapters.session
        if self.is_own:
            return self.own.session
        return self.studio.pcs.session_of(self.chosen[1].contestant.device)

    @property
    def raced(self) -> WorkloadDescription:
        """The picture of the current race, or else the chosen one."""
        return self._raced if self.sides else self.picture

    @property
    def notice(self) -> Notice:
        """The headline, with the sentence below it as its detail."""
        if self.picture.skipped:
            return Notice(self.picture.skipped)
        if self.state is WorkState.STOPPING:
            return Notice("Stopping…")
        if self.state.is_busy:
            return self.moment(()).progress()
        if self.verdict is None:
            names = [entry.label for entry in self.chosen]
            return invitation(self.picture, names, DEFAULT_BUDGET_S)
        words = ""
        if self.crossover is not None:
            size, name = self.crossover
            words = f"{name} leads from {format_size(size, self.picture.size_text)} on."
        return result_notice(self.verdict, [side.label for side in self.sides], words)

    @property
    def reason(self) -> str:
        """What stands below the headline."""
        absence = "" if self._is_without_pytorch else self.studio.session.absence
        return f"{self.notice.detail} {absence}".strip()

    @property
    def leaders(self) -> dict[int, str]:
        """Who led at each size, by the side's label; empty where neither did."""
        return self._leaders.get(self.question, {})

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
        return Moment(
            self.raced,
            self.shown_sides,
            roles,
            now_s=self.now_s,
            verdict=self.verdict,
            is_running=self.state.is_busy,
            photo=(self.learned or _own_picture()) if self.raced.name == LEARN.name else None,
            photo_identity=self.choices.photo,
        )

    def stage(self, roles: Sequence[str]) -> StageView:
        """Return what is to be shown on the full screen."""
        view, notice = self.moment(roles).stage(), self.notice
        if self.sides:
            return view
        return view._replace(headline=notice.sentence, detail=self.what_is_missing or notice.detail)

    def picture_order(self, roles: Sequence[str]) -> PaintOrder:
        """Return the order of the picture of a race that is over."""
        pc = self.studio.pcs.of(self.sides[1].run.request.device)
        inventory, engine = pc.sensors.inventory, pc.session.description
        cpu = inventory.cpu.name if inventory is not None else ""
        torch = engine.torch_version if engine is not None else ""
        return picture_order(self.moment(roles), local_now(), cpu, torch)

    # ── what a person does ───────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Run the chosen race; does nothing while one runs."""
        if not self.can_run:
            return
        self._forget()
        self._raced, self._question = self.picture, self.question
        requests = self._requests()
        self._next_number += len(requests)
        self.sides = self._new_sides(requests)
        self.studio.wakefulness.need(RACE, needed=True)
        if self._is_without_pytorch:
            self.adapters.session.start()
        step = step_of([side.run for side in self.sides if not side.is_over])  # in turns
        if self.is_own:
            self.own.start_engine()
        self._queue.start(lambda _, last: None if last else step, self._session)

    def race_code(self, code: OwnCode, workload: WorkloadDescription) -> None:
        """Race the user's own code, which has run before."""
        if self.state.is_busy:
            self.note(Notice("A race is running: press Race it after its end.", Tone.FAILURE))
            return
        self.own.choose_opened(code, workload)
        self._forget()
        self.choose(picture=OWN)
        self.choose(size=0)
        self.start()

    def stop(self) -> None:
        """Stop the race; the frames so far are kept."""
        self._runs_again = False
        if self._queue.stop():
            self.changed.emit()

    def replay(self) -> None:
        """Show the race that is over again, both sides at once; a second call ends that.

        It is faster than the race was if that took too long.
        """
        if self.is_replaying:
            self.end_replay()
        elif self.is_over:
            finishes_s = [side.end_s for side in self.sides if side.is_reached]
            # The result shows the first finish: nobody's way goes on after the last one.
            self._last_s = max(finishes_s or (side.end_s for side in self.sides))
            self._step_s = max(self._last_s / _LONGEST_REPLAY_S, 1.0) * _REPLAY_MS / 1000
            self._replaying.start()
            self._show_result(0.0)

    def end_replay(self) -> None:
        """End the replay; does nothing without one."""
        if self.is_replaying:
            self._replaying.stop()
            self._show_result(first_finish_s(self.sides))

    def note(self, outcome: Notice) -> None:
        """Say what became of a file."""
        self.outcome = outcome
        self.changed.emit()

    # ── a race that runs ─────────────────────────────────────────────────────────────────────

    def _requests(self) -> list[RunWorkload]:
        ghost = self.ghost
        return race_requests(
            self.picture,
            self.size,
            [entry.contestant for entry in self.chosen],
            DEFAULT_BUDGET_S,
            photo=self.choices.photo if self.learns else "",
            code=self.own.code if self.is_own else None,
            showing=Showing(photo=self.learned if self.learns else None),
            rest_s=REST_S,
            steps=ghost.finish_steps if ghost is not None else None,
            longest_s=ghost.end_s if ghost is not None else None,
            first_number=self._next_number,
        )

    def _new_sides(self, requests: Sequence[RunWorkload]) -> tuple[RaceSide, ...]:
        left, right = (
            RaceSide(entry.label, self._named_run(one))
            for entry, one in zip(self.chosen, requests, strict=True)
        )
        return self.ghost or left, right

    def _named_run(self, request: RunWorkload) -> Run:
        """Return a run that knows its device's name: without a result, the engine gives none."""
        run = Run(request)
        row = self.studio.board.at(request.device)
        if row is not None:
            run.device_name, run.card = row.name, row.identity
        return run

    def _on_step_begun(self) -> None:
        self._show_result(0.0)

    def _on_event_received(self, event: Event, runs: tuple[Run, ...]) -> None:
        for side in self.sides:
            if side.run in runs:
                self._advance(side, event)

    def _advance(self, side: RaceSide, event: Event) -> None:
        side.track.add(event)
        if isinstance(event, FrameReady):
            # Both sides are shown at one time, up to which both of them are known.
            live = (one.end_s for one in self.sides if not one.is_over)
            self._follow_frames(min(live, default=side.end_s))
        elif not isinstance(event, (FramesOpened, SamplesMeasured)):
            if side.run.snippet:
                self.studio.snippets.show(side.run.snippet, RACE)
            self.changed.emit()

    def _follow_frames(self, known_s: float) -> None:
        """Go on towards a time up to which the race is known.

        A side's frames come only in its turns: so the clock runs evenly, a part of a turn later.
        """
        ahead_s = known_s - self.now_s
        if ahead_s > 0:
            is_even = _NEAR_S < ahead_s < _FAR_S
            self._show_moment(self.now_s + ahead_s * _FOLLOWS if is_even else known_s)

    def _show_moment(self, now_s: float) -> None:
        """Show this time, and the words for it a little later."""
        self.now_s = now_s
        self.moment_changed.emit()
        if not self._soon.isActive():
            self._soon.start()

    def _show_result(self, now_s: float) -> None:
        self.now_s = now_s
        self.changed.emit()

    def _on_replayed(self) -> None:
        if (now_s := self.now_s + self._step_s) < self._last_s:
            self._show_moment(now_s)
        else:
            self.end_replay()

    def _on_finished(self) -> None:
        self.own.end()
        self.studio.wakefulness.need(RACE, needed=False)
        self.verdict = judge(self._raced, [side.run for side in self.sides])
        finished = self.verdict.finished
        if all(side.run.state is RunState.FINISHED for side in self.sides):
            leader = self.sides[finished.leader].label if finished.leader is not None else ""
            self._leaders.setdefault(self._question, {})[finished.size] = leader
        if self._runs_again:
            self._runs_again = False
            self.start()
        else:
            self._show_result(first_finish_s(self.sides))

    def _on_settled(self) -> None:
        """Run at the size at which the lever came to rest."""
        if self.state is WorkState.IDLE:
            self.start()
            return
        self.stop()
        self._runs_again = True

    # ── what is opened ───────────────────────────────────────────────────────────────────────

    def _on_opened(self, opened: Photo | OpenedRace) -> None:
        if self.state.is_busy:
            self.note(Notice("A race is running: open the file after its end.", Tone.FAILURE))
        elif isinstance(opened, Photo):
            self._photo, self.outcome = opened, Notice()
            self.choose(photo=opened.picture.identity)
            self.changed.emit()
        else:
            self._open_race(opened)

    def _open_race(self, opened: OpenedRace) -> None:
        """Show a recorded race at its end, or race against a ghost."""
        sides = opened.sides
        request = sides[0].run.request if sides else None
        if request is None or all(one.name != request.workload for one in self.pictures):
            self.note(Notice(_NO_RACE, Tone.FAILURE))
            return
        ghost = min(sides, key=lambda side: side.end_s)
        if len(sides) == 1 and not ghost.is_raceable:
            self.note(Notice(_OTHER_PICTURES, Tone.FAILURE))
            return
        self._forget()
        self._ghost = ghost if ghost.is_raceable else None
        left = _entry_of(ghost).choice if ghost.is_raceable else None
        self.choose(picture=request.workload, left=self.choices.left)
        self.choose(left=left, size=request.size)
        words = f"Ghost: {ghost.label}. Press Run race to race against it."
        if len(sides) == 2:
            self._raced, self.sides = self.picture, sides
            self.verdict = judge(self._raced, [side.run for side in sides])
            self.now_s, words = first_finish_s(sides), f"Recording: {opened.label}."
        self.note(Notice(words))


def _share_engine(one: Contestant, other: Contestant) -> bool:
    """Return whether two contestants can take turns in one engine; by the permanent names."""
    if any(is_adapter(each.device) for each in (one, other)):
        usual = Contestant(device=CPU).dtype
        return all(
            (is_adapter(each.device) or each.device == CPU) and each.dtype == usual
            for each in (one, other)
        )
    return pc_of(one.device) == pc_of(other.device)


def _entry_of(ghost: RaceSide) -> RaceEntry:
    request = ghost.run.request
    threads = request.race.threads if request.race is not None else None
    contestant = Contestant(device=request.device, threads=threads, dtype=request.dtype)
    return RaceEntry(contestant, ghost.label)


def _own_picture() -> PackedFrame | None:
    """Return the program's own picture to learn; None if its file cannot be read."""
    try:
        return lake()
    except (MissingResourceError, OSError) as error:
        _log.warning("%s", error)
        return None
