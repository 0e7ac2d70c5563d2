"""A race from the first click to its result, its ghost, its lever and its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.model.race import race as race_module
from gpu_studio.model.race.race import RaceClock
from gpu_studio.model.run_queue import WorkState
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import two_cards
from tests.fakes.race_answers import race_run, race_seconds

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.studio import Studio
    from tests.fakes.other_pcs import OtherPcs
    from tests.fakes.scripted_engine import Engines

with_cards = pytest.mark.parametrize("inventory", [two_cards()])


def run(qtbot: QtBot, race: Race) -> None:
    race.start()
    qtbot.waitUntil(lambda: race.verdict is not None)


def requests_of(engines: Engines) -> list[RunWorkload]:
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


@pytest.fixture
def with_a_card(racing: Engines) -> Engines:
    racing.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    return racing


@pytest.mark.usefixtures("with_a_card")
@with_cards
def test_with_a_card_the_cpu_races_it(race: Race, inventory: Inventory) -> None:
    assert [entry.contestant for entry in race.choices.chosen] == [
        Contestant(device="cpu"), Contestant(device="cuda:0"),
    ]  # fmt: skip
    assert inventory.cards[0].short_name in race.notice.detail


@pytest.mark.usefixtures("with_a_card")
@with_cards
def test_a_chosen_card_stays_chosen_when_it_gets_another_number(
    qtbot: QtBot, racing: Engines, studio: Studio, race: Race, inventory: Inventory
) -> None:
    second = inventory.cards[1].uuid
    race.choices.choose_contestant(0, Contestant(device="cuda:1"))
    race.choices.choose_contestant(1, Contestant(device="cpu"))
    alone = described_with_cuda(device_count=1, visible_devices=second)
    racing.scripts[DescribeEngine] = [alone]
    studio.session.restart(EngineEnvironment(visible_devices=second))
    qtbot.waitUntil(lambda: studio.session.is_free)
    left, right = race.choices.chosen
    assert (left.label, left.contestant.device) == ("RTX 3060", "cuda:0")
    assert right.contestant == Contestant(device="cpu")


def test_a_single_core_races_two_precisions(
    qtbot: QtBot, racing: Engines, studio: Studio, race: Race
) -> None:
    racing.scripts[DescribeEngine] = [described(cpu_threads=1)]
    studio.session.restart()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert studio.session.description.cpu_threads == 1

    left, right = (entry.contestant for entry in race.choices.chosen)

    assert left.dtype != right.dtype


def test_the_clock_stands_where_both_sides_are_known(
    qtbot: QtBot, race: Race, racing: Engines
) -> None:
    racing.scripts[RunWorkload] = lambda _engine, request: race_run(request, pause_after=4)
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())
    qtbot.waitUntil(lambda: len(race.sides[0].track.frames) == 5)
    left, right = race.sides
    assert right.run.state is RunState.WAITING
    assert left.track.last.elapsed_s > race.clock.now_s == 0.0

    racing.latest.go()
    qtbot.waitUntil(lambda: len(right.track.frames) == 5)

    assert left.run.state is RunState.FINISHED
    assert race.clock.now_s == right.track.last.elapsed_s
    shown, beside = race.moment(("cpu", "cpu")).lanes()
    assert shown.share < beside.share, "one thread is the slower"
    assert "Finishes at" in shown.state
    assert right.label in race.notice.sentence
    racing.latest.go()
    qtbot.waitUntil(lambda: race.verdict is not None)


def test_at_the_end_both_show_the_moment_the_first_one_finished(qtbot: QtBot, race: Race) -> None:
    run(qtbot, race)
    slow, fast = race.sides

    assert race.clock.now_s == fast.end_s == race_seconds(fast.run.request)
    shares = [side.track.at(race.clock.now_s).progress for side in (slow, fast)]
    assert shares == [pytest.approx(0.5), 1]


def test_the_lever_stops_a_race_and_runs_the_last_size(
    qtbot: QtBot, race: Race, racing: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_module, "_SETTLE_MS", 0)
    racing.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, pause_after=4 if request.size == 128 else None
    )
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())

    race.choices.choose_size(64)
    race.choices.choose_size(32)
    qtbot.waitUntil(lambda: 32 in race.leaders)

    assert [one.size for one in requests_of(racing)] == [128, 128, 32, 32]


@pytest.mark.usefixtures("with_a_card")
@with_cards
@pytest.mark.parametrize("kept", [0, 1])
def test_an_engine_that_is_killed_within_a_slice_keeps_the_side_that_finished(
    qtbot: QtBot, race: Race, racing: Engines, kept: int
) -> None:
    def turns(_engine: object, request: RunInTurns) -> object:
        dying = race_run(request.runs[1 - kept])
        yield from (next(dying) for _ in range(8))
        yield from race_run(request.runs[kept])
        yield EngineEnded(exit_code=-9)

    racing.scripts[RunInTurns] = turns
    run(qtbot, race)

    states = [side.run.state for side in race.sides]
    assert states[kept] is RunState.FINISHED
    assert states[1 - kept] is RunState.FAILED
    finished = race.verdict.finished
    assert finished.leader is None
    assert f"{finished.contestants[kept].steps} steps" in finished.sentence
    assert "memory" in finished.sentence  # the system ended the engine
    assert [bool(one.failure) for one in finished.contestants][1 - kept]
    assert race.crossover is None


def test_a_race_that_is_over_can_be_watched_again(qtbot: QtBot, race: Race) -> None:
    run(qtbot, race)
    finish_s = race.clock.now_s
    moments: list[float] = []
    race.moment_changed.connect(lambda: moments.append(race.clock.now_s))

    race.replay()
    qtbot.waitUntil(lambda: any(0 < moment < finish_s for moment in moments))
    assert race.clock.is_replaying
    race.replay()

    assert not race.clock.is_replaying
    assert race.clock.now_s == finish_s


def test_a_stop_keeps_the_frames_so_far(qtbot: QtBot, race: Race, racing: Engines) -> None:
    racing.scripts[RunWorkload] = lambda _engine, request: race_run(request, pause_after=4)
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())
    race.stop()
    qtbot.waitUntil(lambda: race.state is WorkState.IDLE)
    assert len(race.sides[0].track.frames) == 5
    assert race.verdict.finished.leader is None
    assert race.leaders == {}
    assert race.moment(("cpu", "cpu")).lanes()[0].state == "Stopped"


def test_another_choice_brings_the_question_back(qtbot: QtBot, race: Race) -> None:
    run(qtbot, race)
    race.choices.choose_picture("grow")
    assert (race.sides, race.verdict, race.raced.name) == ((), None, "grow")
    assert all(lane.is_to_come for lane in race.moment(("cpu", "cpu")).lanes())


def test_the_devices_of_another_pc_race_there(
    qtbot: QtBot, race: Race, attic: Pc, racing: Engines, other_pcs: OtherPcs
) -> None:
    """Two PCs cannot take turns: with one device there, both sides are."""
    other_pcs.engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    names = [one.label for one in race.choices.entries]
    assert {"CPU, 4 threads · attic", "GT 1030 · attic"} < set(names)
    assert all("attic" not in one.label for one in race.choices.chosen)
    (card,) = (one for one in race.choices.entries if one.label == "GT 1030 · attic")
    race.choices.choose_contestant(1, card.contestant)
    assert [one.label for one in race.choices.chosen] == [
        "CPU, 4 threads · attic", "GT 1030 · attic",
    ]  # fmt: skip
    run(qtbot, race)
    assert [one.device for one in requests_of(other_pcs.engines)] == ["attic/cpu", "attic/cuda:0"]
    assert not requests_of(racing)
    assert "of attic" in race.verdict.finished.sentence
    here = next(one for one in race.choices.entries if one.label == "CPU, 1 thread")
    race.choices.choose_contestant(0, here.contestant)
    assert all("attic" not in one.label for one in race.choices.chosen)


@pytest.mark.parametrize(("last_s", "step_s"), [(0.2, 0.05), (12.0, 0.05), (24.0, 0.1)])
def test_a_replay_has_the_speed_of_the_race_but_takes_twelve_seconds_at_most(
    qtbot: QtBot, last_s: float, step_s: float
) -> None:
    clock = RaceClock()
    clock.replay(last_s, rest_s=3.0)
    assert clock.now_s == 0.0
    with qtbot.waitSignal(clock.changed):
        pass
    assert clock.now_s == pytest.approx(step_s)
    clock.end_replay()
    assert (clock.now_s, clock.is_replaying) == (3.0, False)
