from typing import Any

from gpu_studio.core.messages.race_messages import FramesOpened, RaceOutcome
from gpu_studio.core.notice import Tone
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.side import RaceSide, RaceTrack, frame_of
from gpu_studio.core.race.stage_view import (
    MOST_MOMENTS,
    Moment,
    decode_order,
    film_order,
    picture_order,
)
from gpu_studio.core.race.verdict import judge
from tests.core.race.racing import CARD, CPU, ONE, over

PHOTO = PackedFrame(b"photo", 2, 2)


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def side(contestant: Any, step_s: float, steps: int = 200, **changes: Any) -> RaceSide:
    """Return a side with a frame after each twentieth of its way to 200 steps."""
    run = over(contestant, step_s, steps, **changes)
    frames = (
        frame_of(n * steps / 20 * step_s, n * steps // 20, float(n), n * steps / 4000)
        for n in range(21)
    )
    opened = FramesOpened(run_id=run.request.run_id, width=2, height=2)
    return RaceSide(contestant.device, run, RaceTrack([opened, *frames]))


def moment(*sides: RaceSide, **changes: Any) -> Moment:
    verdict = judge(LEARN, [one.run for one in sides])
    roles = [one.run.request.device for one in sides]
    return Moment(LEARN, sides, roles, verdict=verdict, now_s=1e9, photo=PHOTO)._replace(**changes)


def race(**changes: Any) -> Moment:
    """Return a race that a card has won: after 2 s, the CPU had done 100 of 200 steps."""
    late = RaceOutcome(
        reached=False, steps=104, seconds=2.08, measure=9.0, progress=0.52, finish_steps=200
    )
    slow = side(CPU, 0.02, 104, reached=False, outcome=late)
    return moment(slow, side(CARD, 0.01), **changes)


def test_the_result_has_the_paces_and_the_interval_of_the_sentence() -> None:
    view = race().stage()
    assert plain(view.headline) == "2.0 × faster"
    assert [plain(lane.pace) for lane in view.lanes] == ["50.0 steps/s", "100 steps/s"]
    assert "95\u202f% interval" in view.detail
    assert "100 against 50.0 steps a second" in view.detail
    assert (view.trust, view.trust_tone) == ("Results checked", Tone.GOOD)
    for fact in (LEARN.title, "64", "float32"):
        assert fact in view.foot


def test_before_the_finish_the_words_say_who_leads() -> None:
    view = race(now_s=1.0).stage()
    assert plain(view.headline) == "cuda:0 is 2.0 × faster so far"
    assert not view.trust
    assert view.lanes[0].state == "Was still running"
    assert "Finishes at" in view.lanes[1].state
    assert race(now_s=0.2).stage().headline == "On your marks"


def test_a_wrong_result_is_named_on_its_own_side() -> None:
    view = moment(side(CPU, 0.02), side(CARD, 0.01, verified=False)).stage()
    assert view.headline == "No verdict"
    assert [lane.state for lane in view.lanes][1] == "Wrong result"
    assert view.trust_tone is Tone.FAILURE


def test_the_worst_doubt_stands_beside_it_with_the_number_of_the_others() -> None:
    view = moment(side(CPU, 0.05, throttled=True, other_processes=True), side(CARD, 0.01)).stage()
    assert view.trust == "Busy CPU · 1 more"
    assert view.trust_tone is Tone.AMBER


def test_a_film_ends_with_the_result_and_is_short_enough() -> None:
    for seconds in (0.001, 2.0, 90.0):
        step_s = seconds / 200
        order = film_order(moment(side(CPU, 2 * step_s), side(CARD, step_s)))
        assert len(order.moments) <= MOST_MOMENTS
        assert sum(shown_ms for _, shown_ms in order.moments) <= 15_000
        (last, _), (first, _) = order.moments[-1], order.moments[0]
        assert "faster" in last.headline
        assert "faster" not in first.headline
        assert decode_order(order.encode()) == order


def test_a_picture_of_many_shows_the_fastest_and_the_slowest_and_keeps_all() -> None:
    many = moment(side(ONE, 0.03), side(CARD, 0.01), side(CPU, 0.02))
    order = picture_order(many, "2026-11-22T11:30:00+00:00", "Ryzen 5 5600", "2.13.0")
    ((view, _),) = order.moments
    assert [lane.role for lane in view.lanes] == ["cpu", "cuda:0"]
    for fact in ("GT 1030", "Ryzen 5 5600", "PyTorch 2.13.0", "2026-11-22"):
        assert fact in view.foot
    assert order.text.count('"median_s"') == 3
