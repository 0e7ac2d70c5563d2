"""What a race says before it begins, while it runs, and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.device_name import pc_of
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.units import format_count, format_duration, format_ratio, three_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.race_messages import RaceFinished, RaceTraits
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.frames import RaceFrame
    from gpu_studio.core.race.verdict import Verdict
    from gpu_studio.model.race.race_side import RaceSide

_QUESTIONS = {
    "learn": "Which one learns the picture faster?",
    "paint": "Which one paints faster?",
    "grow": "Which one grows the pattern faster?",
    "swarm": "Which one moves the swarm faster?",
}
_PHASES = {
    "": "Waiting for the engine",
    "set-up": "Setting up",
    "verification": "Checking the result",
    "warm-up": "Warming up",
    "timing": "Running",
}
# Set-up, verification and warm-up come to each side's time.
_PREPARING_S = 3
# Paces of the first moments say little.
_LEAST_S = 0.5
# Sides that are nearer to each other than this are side by side.
_BESIDE = 1.05


class SideWords(NamedTuple):
    """The state of a side in a few words, with the role and the icon of its chip."""

    text: str
    role: str = "muted"
    sign: str = "clock"


def invitation(
    picture: WorkloadDescription,
    names: Sequence[str],
    budget_s: float,
    *,
    is_across: bool = False,
) -> Notice:
    """Return the question of a race that has not begun, and how it runs.

    Args:
        picture: what is drawn.
        names: the contestants.
        budget_s: the time of the fastest one, about.
        is_across: whether they are on two PCs.
    """
    about_s = round(len(names) * (budget_s + _PREPARING_S))
    how = (
        "They run on two PCs, one after the other"
        if is_across
        else "They take turns, each alone while it is timed"
    )
    return Notice(
        _QUESTIONS.get(picture.name, picture.title),
        detail=f"{' against '.join(names)}. {how}, with the same code. About {about_s}\u202fs.",
    )


def progress(picture: WorkloadDescription, sides: Sequence[RaceSide], clock_s: float) -> Notice:
    """Return who leads at a time of the race's clock."""
    traits = picture.race
    assert traits is not None
    steps = next((side.finish_steps for side in sides if side.finish_steps), None)
    goal = f"The same work by the same code, {_how(sides)}."
    if steps is not None:
        goal += f" The first side at {steps_text(steps, traits)} wins."
    frames = [side.at(clock_s) for side in sides]
    if clock_s < _LEAST_S or len(frames) < 2:
        return Notice("On your marks", detail=goal)
    one, other = frames
    if one is None or other is None:
        return Notice("On your marks", detail=goal)
    names = [side.entry.label for side in sides]
    return Notice(_lead(names[0], one, names[1], other), detail=goal)


def _how(sides: Sequence[RaceSide]) -> str:
    is_across = len({pc_of(side.run.request.device) for side in sides}) > 1
    return "one PC after the other" if is_across else "in turns, each side alone"


def _lead(name: str, one: RaceFrame, other: str, beside: RaceFrame) -> str:
    paces = pace_of(one), pace_of(beside)
    if not all(paces):
        leader = name if paces[0] else other
        return f"{leader} leads" if any(paces) else "On your marks"
    ratio = paces[0] / paces[1]
    if 1 / _BESIDE < ratio < _BESIDE:
        return f"{name} and {other} are side by side"
    leader = name if ratio > 1 else other
    return f"{leader} is {format_ratio(max(ratio, 1 / ratio))} faster so far"


def pace_of(frame: RaceFrame) -> float:
    """Return the steps a second until a moment; 0 before the first step."""
    return frame.steps / frame.elapsed_s if frame.elapsed_s else 0.0


def result(
    verdict: Verdict, names: Sequence[str], crossover: str, *, can_run_again: bool = False
) -> Notice:
    """Return the verdict, its reason, the energy, and where the leader changes."""
    energies = (
        f"{name} used {three_digits(one.energy_j)}\u202fJ."
        for name, one in zip(names, verdict.finished.contestants, strict=True)
        if one.energy_j is not None
    )
    parts = (verdict.reason, *energies, crossover)
    return Notice(
        verdict.finished.sentence,
        detail=" ".join(part for part in parts if part),
        action=Action.RUN_AGAIN if can_run_again else None,
    )


def interval_text(finished: RaceFinished) -> str:
    """Return the interval of a race's ratio: ``95 % interval 1.77 to 1.81 ×``; empty without."""
    if finished.ratio_low is None or finished.ratio_high is None:
        return ""
    ends = " to ".join(map(three_digits, (finished.ratio_low, finished.ratio_high)))
    return f"95\u202f% interval {ends}\u202f×"


def trust(verdict: Verdict) -> Notice:
    """Return how far to trust a verdict in a few words, with all doubts as the detail."""
    doubts = verdict.doubts
    if any(one.failure for one in verdict.finished.contestants):
        words = "Not finished"
    elif doubts or verdict.finished.undecided:
        first = doubts[0] if doubts else "No winner"
        more = f" · {len(doubts) - 1} more" if len(doubts) > 1 else ""
        words = f"{first[:1].upper()}{first[1:]}{more}"
    else:
        return Notice("Checked", Tone.GOOD, detail="Both results are checked.")
    return Notice(words, Tone.AMBER, detail="\n".join(doubts))


def measure_text(value: float, traits: RaceTraits) -> str:
    """Return a quantity of the finish line with its unit: ``21.8 dB``."""
    return f"{three_digits(value)}\u202f{traits.unit}"


def steps_text(steps: int, traits: RaceTraits) -> str:
    """Return a number of steps by their name: ``2,400 tiles``, ``1 tile``."""
    title = traits.step_title
    return f"{format_count(steps)} {title[:-1] if steps == 1 else title}"


def count_text(steps: int, finish_steps: int | None, traits: RaceTraits | None = None) -> str:
    """Return how many steps are done, and of how many: ``99 of 2,400 steps``, or ``99 of 2,400``.

    Args:
        steps: those that are done.
        finish_steps: the finish line; None if it is unknown.
        traits: have the name of the steps; None leaves it out.
    """
    known = steps if finish_steps is None else finish_steps
    last = format_count(known) if traits is None else steps_text(known, traits)
    return last if finish_steps is None else f"{format_count(steps)} of {last}"


def pace_text(pace: float) -> str:
    """Return the steps a second; a dash before the first step."""
    return three_digits(pace) if pace else "–"


def power_text(frame: RaceFrame | None) -> str:
    """Return a device's mean power over the race; empty if unknown."""
    if frame is None or frame.power_w is None:
        return ""
    return f"{three_digits(frame.power_w)}\u202fW"


def energy_text(frame: RaceFrame | None) -> str:
    """Return the energy of all steps at the rate so far; empty if unknown."""
    if frame is None or frame.energy_j is None or not frame.progress:
        return ""
    return f"{three_digits(frame.energy_j / frame.progress)}\u202fJ a picture"


def clock_text(elapsed_s: float) -> str:
    """Return the race's clock: tenths of a second."""
    return f"{elapsed_s:.1f}\u202fs"


def side_words(
    side: RaceSide | None, clock_s: float, *, is_running: bool, is_beaten: bool
) -> SideWords:
    """Return the state of a side at a time of the race's clock.

    Args:
        side: the side; None before the race.
        clock_s: the race's clock.
        is_running: whether the race runs, or is shown again.
        is_beaten: whether another side finished.
    """
    if side is None:
        return SideWords("")
    state = side.run.state
    if state in (RunState.FAILED, RunState.STOPPED):
        return SideWords(
            "Stopped" if state is RunState.STOPPED else "Did not finish", "amber", "warning"
        )
    if state is RunState.WAITING and not is_running:
        return SideWords("Did not run", "amber", "warning")
    if not side.is_over:
        return _live_words(side)
    end = clock_s + 1e-6 >= side.end_s
    if side.is_reached and end:
        label = f"Finished, {side.origin}" if side.origin else "Finished"
        return SideWords(label, "good", "check")
    if not side.is_reached and is_beaten and (end or not is_running):
        return SideWords("Was still moving", "muted", "clock")
    if not side.is_reached and end:
        return SideWords("Time is up", "amber", "clock")
    finish = format_duration(side.end_s)
    when = side.origin or (f"of {side.began_at}" if side.began_at else "")
    ends = f"finishes at {finish}" if side.is_reached else f"stops at {finish}"
    who = f"Ghost {when}".strip() if is_running or side.origin else ""
    return SideWords(f"{who}, {ends}" if who else ends.capitalize(), "muted", "ghost")


def _live_words(side: RaceSide) -> SideWords:
    if side.run.state is RunState.WAITING and not side.run.has_begun:
        return SideWords("Ready")
    words = _PHASES.get(side.run.phase, side.run.phase)
    if side.run.phase == "timing":
        return SideWords("Live", "accent", "play")
    return SideWords(words)
