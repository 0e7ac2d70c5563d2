"""What a race says and shows at a moment: in the tab, on the full screen, and in saved pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.packed_frame import PackedFrame  # noqa: TC001  # msgspec reads it
from gpu_studio.core.race.picture_file import shared_text
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.side import first_finish_s
from gpu_studio.core.units import (
    format_count,
    format_duration,
    format_ratio,
    format_size,
    three_digits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.race_messages import FrameReady, RaceTraits
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.side import RaceSide
    from gpu_studio.core.race.verdict import Verdict

MOST_MOMENTS = 150
_FRAMES_PER_S = 10
# Longer races are shown faster, so that the whole takes at most 15 s.
_LONGEST_RACE_S = 11.0
_RESULT_MS = 3500
PICTURE_SIZE, FILM_SIZE = (1200, 630), (960, 540)
"""In this size, chats and forums show a preview of the picture without cutting it."""
_QUESTIONS = {
    "learn": "Which one learns the picture faster?",
    "paint": "Which one paints faster?",
    "grow": "Which one grows the pattern faster?",
    "swarm": "Which one moves the swarm faster?",
}
_POSTERS = {*_QUESTIONS} - {LEARN.name}
_PHASES = {
    "": "Waiting for PyTorch",
    "set-up": "Setting up",
    "verification": "Checking the result",
    "warm-up": "Warming up",
    "timing": "Running",
}
_IN_TURNS = "in turns, each alone while it is timed"
# Set-up, verification and warm-up come to each side's time.
_PREPARING_S = 3
# Paces of the first moments say little.
_LEAST_S = 0.5
# Sides that are nearer to each other than this are side by side.
_BESIDE = 1.05


class LaneView(NamedTuple):
    """A contestant at a moment, in words, with its picture and the color role of its device.

    ``poster`` names the picture whose poster is shown without a ``picture``; ``is_to_come`` says
    that either is only what it will draw. ``share`` is that of the way to the finish, 0 to 1.
    """

    name: str
    role: str
    picture: PackedFrame | None = None
    poster: str = ""
    is_to_come: bool = False
    state: str = ""
    state_tone: Tone = Tone.QUIET
    clock: str = "0.0\u202fs"
    pace: str = ""
    steps: str = ""
    achieved: str = ""
    share: float = 0.0
    is_reached: bool = False


class StageView(NamedTuple):
    """What is on the stage at a moment: who leads, the contestants, and what was raced.

    ``trust`` says in a few words how certain a result is.
    """

    headline: str
    lanes: tuple[LaneView, ...]
    detail: str = ""
    foot: str = "GPU Studio"
    trust: str = ""
    trust_tone: Tone = Tone.PLAIN


class PaintOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Moments to paint in a child, each with the time that it is shown, in milliseconds.

    One is a PNG picture with ``text`` in its chunk, several are an animation. ``size`` is in
    pixels.
    """

    moments: Annotated[
        tuple[tuple[StageView, int], ...], Meta(min_length=1, max_length=MOST_MOMENTS)
    ]
    size: tuple[int, int] = FILM_SIZE
    text: str = ""

    def encode(self) -> bytes:
        """Return the order for the painter's standard input."""
        return msgspec.msgpack.encode(self)


def decode_order(content: bytes) -> PaintOrder:
    """Return an order of this program's own; raise `ValueError` for anything else."""
    return msgspec.msgpack.decode(content, type=PaintOrder)


class Moment(NamedTuple):
    """A race at a time of its clock, from which everything to show and to say follows.

    Attributes:
        picture: what is drawn.
        sides: the contestants, in the order of the verdict's.
        roles: the colors of their devices.
        now_s: the time.
        verdict: the result; None before the end.
        is_running: whether the race runs.
        photo: the picture that is to be learned; None for another race, or if unknown.
        photo_identity: identifies it, as in `RaceParameters`.
        facts: what else the foot says.
    """

    picture: WorkloadDescription
    sides: Sequence[RaceSide]
    roles: Sequence[str]
    now_s: float = 0.0
    verdict: Verdict | None = None
    is_running: bool = False
    photo: PackedFrame | None = None
    photo_identity: str = ""
    facts: tuple[str, ...] = ()

    @property
    def is_result(self) -> bool:
        """Whether the result is to be shown: from the first finish on."""
        is_over = self.verdict is not None and not self.is_running
        return is_over and self.now_s + 1e-6 >= first_finish_s(self.sides)

    @property
    def traits(self) -> RaceTraits:
        """What its steps are."""
        assert self.picture.race is not None
        return self.picture.race

    def stage(self) -> StageView:
        """Return what the stage shows."""
        progress = self.progress()
        headline, detail, doubt = progress.sentence, "", Notice()
        if self.is_running:
            detail = progress.detail
        elif self.verdict is not None and self.is_result:
            finished, doubt = self.verdict.finished, trust(self.verdict)
            headline = self.verdict.headline
            detail = f"{finished.sentence} {interval_text(self.verdict)}".strip()
        requests = [side.run.request for side in self.sides]
        foot = (
            "GPU Studio",
            self.picture.title,
            format_size(requests[0].size, self.picture.size_text),
            " against ".join(dict.fromkeys(request.dtype for request in requests)),
            *(self.facts or (_IN_TURNS,)),
        )
        return StageView(
            headline=headline,
            lanes=self.lanes(),
            detail=detail,
            foot=" · ".join(filter(None, foot)),
            trust=doubt.sentence,
            trust_tone=doubt.tone,
        )

    def lanes(self) -> tuple[LaneView, ...]:
        """Return all sides."""
        return tuple(map(self.lane, range(len(self.sides))))

    def lane(self, number: int) -> LaneView:
        """Return one of the sides."""
        side, traits = self.sides[number], self.traits
        frame = side.track.at(self.now_s)
        shown = side.track.picture_at(self.now_s)
        parameters = side.run.request.race
        is_same = parameters is None or parameters.photo == self.photo_identity
        state, tone = self._state(side)
        result = side.run.result
        is_wrong = self.is_result and result is not None and result.verified is False
        pace = self._pace(side)
        return LaneView(
            name=side.label,
            role=self.roles[number],
            picture=shown or (self.photo if is_same else None),
            # A picture that is learned shows its photo.
            poster="" if shown or self.picture.name not in _POSTERS else self.picture.name,
            is_to_come=shown is None,
            state="Wrong result" if is_wrong else state,
            state_tone=Tone.AMBER if is_wrong else tone,
            clock=f"{min(self.now_s, side.end_s):.1f}\u202fs",
            pace=f"{three_digits(pace) if pace else '–'} {traits.step_title}/s",
            steps=_count(frame.steps if frame else 0, side.finish_steps),
            achieved=_achieved(frame, traits) if frame is not None else "",
            share=frame.progress if frame is not None else 0.0,
            is_reached=side.is_reached and side.has_ended(self.now_s),
        )

    def progress(self) -> Notice:
        """Return who leads."""
        steps = next((side.finish_steps for side in self.sides if side.finish_steps), None)
        goal = "The same work by the same code, in turns, each side alone."
        if steps is not None:
            title = self.traits.step_title
            goal += f" The first side at {_counted(steps, title)} wins."
        frames = [side.track.at(self.now_s) for side in self.sides]
        paces = [_pace_of(frame) for frame in frames if frame is not None]
        if self.now_s < _LEAST_S or len(paces) < 2 or not any(paces):
            return Notice("On your marks", detail=goal)
        names = [side.label for side in self.sides]
        return Notice(_lead(names[0], paces[0], names[1], paces[1]), detail=goal)

    def _pace(self, side: RaceSide) -> float:
        """Return a side's steps a second; with the result, that of the whole run, as it says.

        The slower side may have ended a step or a turn after the moment that is shown.
        """
        if side.pace is not None and self.is_result:
            return side.pace
        frame = side.track.at(self.now_s)
        return _pace_of(frame) if frame is not None else 0.0

    def _state(self, side: RaceSide) -> tuple[str, Tone]:
        run = side.run
        if run.state in (RunState.FAILED, RunState.STOPPED):
            return "Stopped" if run.state is RunState.STOPPED else "Did not finish", Tone.AMBER
        if not side.is_over:
            if run.state is RunState.WAITING and self.verdict is not None:
                return "Did not run", Tone.AMBER
            if run.state is RunState.WAITING and not run.has_begun:
                return "Ready" * self.is_running, Tone.QUIET
            is_live = run.phase == "timing"
            return "Live" if is_live else _PHASES.get(run.phase, run.phase), Tone.QUIET
        if side.has_ended(self.now_s):
            if side.is_reached:
                return "Finished" + f", {side.origin}" * bool(side.origin), Tone.GOOD
            is_beaten = any(one.is_reached for one in self.sides if one is not side)
            return ("Was still running", Tone.QUIET) if is_beaten else ("Time is up", Tone.AMBER)
        if not side.is_reached:
            return "Was still running", Tone.QUIET
        ghost = f"Ghost {side.origin}, f" if side.origin else "F"
        return f"{ghost}inishes at {format_duration(side.end_s)}", Tone.QUIET


def invitation(picture: WorkloadDescription, names: Sequence[str], timed_s: float) -> Notice:
    """Return the question of a race that has not begun, and how it runs.

    Args:
        picture: what is drawn.
        names: the contestants.
        timed_s: the seconds of the fastest one, about.
    """
    about_s = round(len(names) * (timed_s + _PREPARING_S))
    how = "They take turns, each alone while it is timed, with the same code"
    return Notice(
        _QUESTIONS.get(picture.name, f"Which one runs {picture.title} faster?"),
        detail=f"{' against '.join(names)}. {how}. About {about_s}\u202fs.",
    )


def result_notice(verdict: Verdict, names: Sequence[str], crossover: str) -> Notice:
    """Return the verdict, its reason, the energy, and where the leader changes."""
    energies = (
        f"{name} used {three_digits(one.energy_j)}\u202fJ."
        for name, one in zip(names, verdict.finished.contestants, strict=True)
        if one.energy_j is not None
    )
    parts = (verdict.reason, *energies, crossover)
    return Notice(verdict.finished.sentence, detail=" ".join(filter(None, parts)))


def interval_text(verdict: Verdict) -> str:
    """Return the interval of a race's ratio: ``95 % interval 1.77 to 1.81 ×``; empty without."""
    low, high = verdict.finished.ratio_low, verdict.finished.ratio_high
    if low is None or high is None:
        return ""
    return f"95\u202f% interval {three_digits(low)} to {three_digits(high)}\u202f×."


def trust(verdict: Verdict) -> Notice:
    """Return how far to trust a verdict in a few words, with all doubts as the detail."""
    found = verdict.trust
    if any(one.failure for one in verdict.finished.contestants):
        return msgspec.structs.replace(found, sentence="Not finished", tone=Tone.AMBER)
    if verdict.finished.undecided and found.tone is Tone.GOOD:
        return msgspec.structs.replace(found, sentence="No winner", tone=Tone.AMBER)
    return found


def picture_order(race: Moment, made_at: str, cpu_name: str, torch_version: str) -> PaintOrder:
    """Return the order of a race's picture: the moment when the first contestant finished.

    Of more than two contestants, the fastest and the slowest are shown: more cannot be read in a
    small preview.

    Args:
        race: a race that is over.
        made_at: the present time in ISO 8601.
        cpu_name: the name of this PC's CPU.
        torch_version: the engine's.
    """
    assert race.verdict is not None
    finished, sides = race.verdict.finished, race.sides
    results = [side.run.result for side in sides if side.run.result is not None]
    cards = [short_name(one.device_name) for one in results if not is_cpu(one.device)]
    torch = f"PyTorch {torch_version}" if torch_version else ""
    shown = race._replace(
        now_s=first_finish_s(sides), facts=(*cards[:1], cpu_name, torch, made_at[:10])
    )
    view = shown.stage()
    by_pace = sorted(
        range(len(sides)),
        key=lambda one: finished.contestants[one].seconds / max(finished.contestants[one].steps, 1),
    )
    few = sorted({by_pace[0], by_pace[-1]}) if len(by_pace) > 2 else range(len(by_pace))
    view = view._replace(lanes=tuple(view.lanes[index] for index in few))
    text = shared_text(finished, sides, made_at)
    return PaintOrder(moments=((view, 0),), size=PICTURE_SIZE, text=text)


def film_order(race: Moment) -> PaintOrder:
    """Return the order of the animation of a race that is over; its last frame is the result."""
    last_s = first_finish_s(race.sides)
    step_s = max(1.0, last_s / _LONGEST_RACE_S) / _FRAMES_PER_S
    times_s = [number * step_s for number in range(int(last_s / step_s) + 1)][: MOST_MOMENTS - 1]
    frame_ms = round(1000 / _FRAMES_PER_S)
    moments = [(race._replace(now_s=now_s).stage(), frame_ms) for now_s in times_s]
    return PaintOrder(
        moments=(*moments, (race._replace(now_s=last_s).stage(), _RESULT_MS)),
    )


def _lead(name: str, pace: float, other: str, beside: float) -> str:
    if not (pace and beside):
        return f"{name if pace else other} leads"
    ratio = pace / beside
    if 1 / _BESIDE < ratio < _BESIDE:
        return f"{name} and {other} are side by side"
    return f"{name if ratio > 1 else other} is {format_ratio(max(ratio, 1 / ratio))} faster so far"


def _pace_of(frame: FrameReady) -> float:
    return frame.steps / frame.elapsed_s if frame.elapsed_s else 0.0


def _achieved(frame: FrameReady, traits: RaceTraits) -> str:
    """Return what is reached, the device's mean power, and the energy of all steps at this rate."""
    amounts = {
        traits.unit: frame.measure if traits.measure_title else None,
        "W": frame.power_w,
        "J a picture": frame.energy_j / frame.progress
        if frame.energy_j is not None and frame.progress
        else None,
    }
    known = ((value, unit) for unit, value in amounts.items() if value is not None)
    return " · ".join(f"{three_digits(value)}\u202f{unit}" for value, unit in known)


def _counted(steps: int, title: str) -> str:
    return f"{format_count(steps)} {title[:-1] if steps == 1 else title}"


def _count(steps: int, finish_steps: int | None) -> str:
    done = format_count(steps)
    return done if finish_steps is None else f"{done} of {format_count(finish_steps)}"
