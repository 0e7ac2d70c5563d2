"""What a race says before it begins, while it runs, and after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.notice import Action, Notice, Tone
from gpu_studio.core.units import format_duration, three_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.race_messages import RaceTraits
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.core.race.race_track import RaceFrame
    from gpu_studio.core.race.verdict import Verdict
    from gpu_studio.model.race.race_side import RaceSide

_QUESTIONS = {
    "learn": "Which one learns the picture first?",
    "paint": "Which one paints the pictures first?",
    "grow": "Which one grows the pattern first?",
}
_PHASES = {
    "": "Waiting for the engine",
    "set-up": "Setting up",
    "verification": "Checking the result",
    "warm-up": "Warming up",
    "timing": "Running",
}
# Set-up, verification and warm-up come to each budget.
_PREPARING_S = 8


class SideWords(NamedTuple):
    """The state of a side in a few words, with the role and the icon of its chip."""

    text: str
    role: str = "muted"
    sign: str = "clock"


def invitation(picture: WorkloadDescription, names: Sequence[str], budget_s: float) -> Notice:
    """Return the question of a race that has not begun, and how it runs."""
    longest_s = round(len(names) * (budget_s + _PREPARING_S))
    return Notice(
        _QUESTIONS.get(picture.name, picture.title),
        detail=f"{' against '.join(names)}. They take turns, each alone while it is timed, with "
        f"the same code. Under {longest_s}\u202fs.",
    )


def progress(picture: WorkloadDescription, sides: Sequence[RaceSide], clock_s: float) -> Notice:
    """Return who leads at a time of the race's clock."""
    traits = picture.race
    assert traits is not None
    goal = f"The first side at {measure_text(traits.finish, traits)} wins."
    frames = [side.at(clock_s) for side in sides]
    if clock_s == 0.0 or len(frames) < 2:
        return Notice("On your marks", detail=goal)
    one, other = frames
    if one is None or other is None:
        return Notice("On your marks", detail=goal)
    names = [side.entry.label for side in sides]
    return Notice(_lead(traits, names[0], one, names[1], other), detail=goal)


def _lead(traits: RaceTraits, name: str, one: RaceFrame, other: str, beside: RaceFrame) -> str:
    ahead = one.measure - beside.measure
    if abs(ahead) < traits.finish / 100:
        return f"{name} and {other} are side by side"
    leader = name if ahead > 0 else other
    return f"{leader} leads by {measure_text(abs(ahead), traits)}"


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


def trust(verdict: Verdict) -> Notice:
    """Return how far to trust a verdict in a few words, with all doubts as the detail."""
    doubts = verdict.doubts
    if any(one.failure for one in verdict.finished.contestants):
        words = "Not finished"
    elif doubts or verdict.finished.undecided:
        first = doubts[0] if doubts else "No winner"
        words = first[:1].upper() + first[1:]
    else:
        return Notice("Checked", Tone.GOOD, detail="Both results are checked.")
    return Notice(words, Tone.AMBER, detail="\n".join(doubts))


def measure_text(value: float, traits: RaceTraits) -> str:
    """Return a quantity of the finish line with its unit: ``21.8 dB``."""
    return f"{three_digits(value)}\u202f{traits.unit}"


def goal_text(traits: RaceTraits) -> str:
    """Return the name of the quantity, and where it finishes."""
    return f"{traits.measure_title}, finish at {measure_text(traits.finish, traits)}"


def clock_text(elapsed_s: float) -> str:
    """Return the race's clock: tenths of a second."""
    return f"{elapsed_s:.1f}\u202fs"


def side_words(side: RaceSide | None, clock_s: float, *, is_running: bool) -> SideWords:
    """Return the state of a side at a time of the race's clock."""
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
