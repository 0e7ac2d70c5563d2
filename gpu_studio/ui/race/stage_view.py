"""What the stage shows of a race at a time of its clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.notice import Tone
from gpu_studio.core.race.animation_order import (
    AnimatedMoment,
    AnimatedSide,
    AnimationOrder,
    times_of,
    with_picture,
)
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.model.race import race_words
from gpu_studio.ui.race.framed_picture import image_of
from gpu_studio.ui.race.stage import StageSide, StageView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QImage

    from gpu_studio.core.race.frames import RaceFrame
    from gpu_studio.core.race.photo import Detail
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_side import RaceSide


def stage_view(
    race: Race,
    roles: Sequence[str],
    lens: Detail | None,
    preview: Callable[[RaceSide | None], QImage | None],
) -> StageView:
    """Return what the stage shows now.

    Args:
        race: what is shown of it is at its clock's time.
        roles: the colors of its sides.
        lens: what a lens shows of a learned picture.
        preview: returns what a side is to draw, before its first frame.
    """
    now_s = race.clock.now_s
    notice = race.notice
    is_result = race.is_result(now_s)
    headline, detail = (
        _result_words(race)
        if is_result
        else (race_words.progress(race.raced, race.sides, now_s).sentence, "")
    )
    if not race.sides or race.state.is_busy:
        headline, detail = notice.sentence, notice.detail
    if not race.sides:
        detail = race.what_is_missing or detail
    trust = race_words.trust(race.verdict) if race.verdict is not None else None
    return StageView(
        headline=headline,
        detail=detail,
        sides=_sides_at(race, roles, preview),
        foot=foot_of(race),
        trust=trust.sentence if trust is not None and is_result else "",
        is_good=trust is not None and trust.tone is Tone.GOOD,
        lens=lens,
    )


def animation_order(race: Race, roles: Sequence[str], lens: Detail | None) -> AnimationOrder:
    """Return the order of the animation of a race that is over."""
    assert race.verdict is not None
    trust = race_words.trust(race.verdict)
    last_s = race.first_finish_s
    times = times_of(last_s)
    moments = []
    for number, (now_s, shown_ms) in enumerate(times):
        is_last = number == len(times) - 1
        headline, detail = (
            _result_words(race)
            if is_last
            else (race_words.progress(race.raced, race.sides, now_s).sentence, "")
        )
        sides = tuple(
            with_picture(_words_of(race, side, role, now_s), side.picture_at(now_s))
            for side, role in zip(race.sides, roles, strict=False)
        )
        moments.append(
            AnimatedMoment(
                headline=headline,
                detail=detail,
                sides=sides,
                shown_ms=shown_ms,
                trust=trust.sentence if is_last else "",
            )
        )
    return AnimationOrder(
        moments=tuple(moments),
        foot=foot_of(race),
        is_good=trust.tone is Tone.GOOD,
        lens=(lens.x, lens.y, lens.share) if lens is not None else None,
    )


def foot_of(race: Race) -> str:
    """Return the picture, its size and the dtype."""
    picture = race.raced
    requests = [side.run.request for side in race.sides]
    if not requests:
        return "GPU Studio"
    dtypes = dict.fromkeys(request.dtype for request in requests)
    parts = (
        "GPU Studio",
        picture.title,
        format_size(requests[0].size, picture.size_text),
        " against ".join(dtypes),
        "in turns, each alone while it is timed",
    )
    return " · ".join(parts)


def _result_words(race: Race) -> tuple[str, str]:
    """Return the ratio in large type, and the sentence."""
    assert race.verdict is not None
    finished, times = race.verdict.finished, race.verdict.times
    if finished.leader is None:
        return "A tie" if finished.ratio is not None else "No verdict", finished.sentence
    leader = race.sides[finished.leader]
    end = f"{leader.entry.label} was ahead when the time was up."
    if leader.is_reached:
        time = format_duration(leader.end_s)
        end = f"{leader.entry.label} finished after {time}. This is how far the other side was."
    interval = race_words.interval_text(finished)
    return f"{times[0].upper()}{times[1:]} faster", " · ".join(filter(None, (interval, end)))


def _sides_at(
    race: Race, roles: Sequence[str], preview: Callable[[RaceSide | None], QImage | None]
) -> tuple[StageSide, ...]:
    """Return the sides at the time of the race's clock; before a race, those that will run."""
    if not race.sides:
        chosen = zip(race.choices.chosen, roles, strict=False)
        return tuple(
            StageSide(AnimatedSide(name=entry.label, role=role), preview(None), is_dimmed=True)
            for entry, role in chosen
        )
    now_s, shown = race.clock.now_s, []
    for side, role in zip(race.sides, roles, strict=False):
        image = _image_at(side, now_s)
        words = _words_of(race, side, role, now_s)
        shown.append(StageSide(words, image or preview(side), is_dimmed=image is None))
    return tuple(shown)


def _words_of(race: Race, side: RaceSide, role: str, now_s: float) -> AnimatedSide:
    traits = race.raced.race
    assert traits is not None
    frame = side.at(now_s)
    done = frame.steps if frame is not None else 0
    return AnimatedSide(
        name=side.entry.label,
        role=role,
        clock=race_words.clock_text(min(now_s, side.end_s)),
        pace=f"{race_words.pace_text(race.pace_of(side, now_s))} {traits.step_title}/s",
        steps=race_words.count_text(done, side.finish_steps, traits),
        achieved=_achieved(race, frame),
        share=frame.progress if frame is not None else 0.0,
        is_reached=side.is_reached and now_s + 1e-6 >= side.end_s,
    )


def _achieved(race: Race, frame: RaceFrame | None) -> str:
    traits = race.raced.race
    assert traits is not None
    if frame is None:
        return ""
    has_measure = bool(traits.measure_title)
    parts = (
        race_words.measure_text(frame.measure, traits) if has_measure else "",
        race_words.power_text(frame),
        race_words.energy_text(frame),
    )
    return " · ".join(filter(None, parts))


def _image_at(side: RaceSide, now_s: float) -> QImage | None:
    return image_of(side.picture_at(now_s))
