"""A race from the first click to its result, its ghost, its lever and its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.race_messages import FrameReady, RaceOutcome
from gpu_studio.core.messages.run_messages import RunFailed, RunInTurns, RunWorkload
from gpu_studio.core.notice import Action
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.core.race.shared_race import decode_shared, encode_shared
from gpu_studio.model.race import race as race_module
from gpu_studio.model.race.ghosts import ghost_of
from gpu_studio.model.race.sharing import order_of
from gpu_studio.model.run_queue import WorkState
from tests.driving.window import plain
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import two_cards
from tests.fakes.race_answers import pictures_of, race_run, race_seconds
from tests.fakes.run_answers import kept_busy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.model.pc import Pc
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.studio import Studio
    from tests.fakes.other_pcs import OtherPcs
    from tests.fakes.scripted_engine import Engines

with_cards = pytest.mark.parametrize("inventory", [two_cards()])
_NOW = "2026-11-22T11:50:00+00:00"


def run(qtbot: QtBot, race: Race) -> None:
    race.start()
    qtbot.waitUntil(lambda: race.verdict is not None)


def requests_of(engines: Engines) -> list[RunWorkload]:
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


@pytest.fixture
def with_a_card(racing: Engines) -> Engines:
    racing.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    return racing


def test_without_a_card_one_thread_races_all_threads(
    qtbot: QtBot, race: Race, engines: Engines
) -> None:
    assert [entry.label for entry in race.choices.chosen] == ["CPU, 1 thread", "CPU, 4 threads"]

    run(qtbot, race)

    asked = requests_of(engines)
    assert [one.race.threads for one in asked] == [1, None]
    assert len({one.size for one in asked}) == 1
    assert all(one.showing.frames for one in asked)
    assert race.verdict.finished.leader == 1
    assert race.verdict.finished.ratio == pytest.approx(2, rel=0.05)


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
    qtbot: QtBot, race: Race, racing: Engines, tmp_path: Path
) -> None:
    racing.scripts[RunWorkload] = lambda _engine, request: race_run(request, pause_after=4)
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())
    qtbot.waitUntil(lambda: len(race.sides[0].track) == 5)
    left, right = race.sides
    assert right.run.state is RunState.WAITING
    assert left.track.last.elapsed_s > race.clock.now_s == 0.0

    racing.latest.go()
    qtbot.waitUntil(lambda: len(right.track) == 5)

    assert left.run.state is RunState.FINISHED
    assert race.clock.now_s == right.track.last.elapsed_s
    ghost = left.at(race.clock.now_s)
    assert ghost.progress < right.track.last.progress, "one thread is the slower"
    assert "Ghost" in race.words_of(0).text
    assert right.entry.label in race.notice.sentence
    racing.latest.go()
    qtbot.waitUntil(lambda: race.verdict is not None)


def test_at_the_end_both_show_the_moment_the_first_one_finished(qtbot: QtBot, race: Race) -> None:
    run(qtbot, race)
    slow, fast = race.sides

    assert race.clock.now_s == fast.end_s == race_seconds(fast.run.request)
    assert fast.at(race.clock.now_s).progress == 1
    assert slow.at(race.clock.now_s).progress == pytest.approx(0.5)
    assert [race.words_of(side).sign for side in (0, 1)] == ["ghost", "check"]


@pytest.mark.usefixtures("with_a_card")
@with_cards
def test_the_lever_finds_where_the_leader_changes(
    qtbot: QtBot, race: Race, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_module, "_SETTLE_MS", 0)
    race.choices.choose_size(16)
    assert not requests_of(engines), "the lever alone starts no first race"
    run(qtbot, race)
    assert race.crossover is None

    race.choices.choose_size(128)
    qtbot.waitUntil(lambda: 128 in race.leaders)

    cpu, card = (entry.label for entry in race.choices.chosen)
    assert race.leaders == {16: cpu, 128: card}
    assert race.crossover == (128, card)
    assert "128" in race.notice.detail
    assert f"{card} used 248 J" in plain(race.notice.detail)
    assert card in race.notice.detail


def test_the_lever_stops_a_race_and_runs_the_last_size(
    qtbot: QtBot, race: Race, racing: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_a_stop_keeps_the_frames_so_far(
    qtbot: QtBot, race: Race, racing: Engines, tmp_path: Path
) -> None:
    racing.scripts[RunWorkload] = lambda _engine, request: race_run(request, pause_after=4)
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())

    race.stop()
    qtbot.waitUntil(lambda: race.state is WorkState.IDLE)

    assert len(race.sides[0].track) == 5
    assert race.verdict.finished.leader is None
    assert race.leaders == {}
    assert race.words_of(0).sign == "warning"


@pytest.mark.usefixtures("with_a_card")
@with_cards
def test_a_lost_card_leaves_the_cpus_run_and_names_the_card(
    qtbot: QtBot, race: Race, racing: Engines, tmp_path: Path
) -> None:
    def answer(_engine: object, request: RunWorkload) -> object:
        if request.device == "cpu":
            yield from race_run(request)
            return
        events = race_run(request)
        yield from (next(events) for _ in range(8))
        failure = Failure(FailureKind.CUDA_ERROR, "The card dropped off the bus.", fatal=False)
        yield RunFailed(run_id=request.run_id, failure=failure)

    racing.scripts[RunWorkload] = answer
    run(qtbot, race)

    cpu, card = race.sides
    assert cpu.run.state is RunState.FINISHED
    assert len(card.track) > 0
    sentence = race.verdict.finished.sentence
    assert "dropped off the bus" in sentence
    assert card.entry.label in sentence
    assert "cuda:0" not in sentence
    assert race.verdict.finished.leader is None
    assert race.crossover is None


@pytest.mark.usefixtures("with_a_card")
@with_cards
@pytest.mark.parametrize("kept", [0, 1])
def test_an_engine_that_is_killed_within_a_slice_keeps_the_side_that_finished(
    qtbot: QtBot, race: Race, racing: Engines, tmp_path: Path, kept: int
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


def test_the_slower_side_has_the_pace_of_the_sentence_and_is_not_watched_beyond_the_finish(
    qtbot: QtBot,
    race: Race,
    racing: Engines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its last step ended after the finish of the faster one."""
    monkeypatch.setattr(race_module, "_LONGEST_REPLAY_S", 0.2)
    late = RaceOutcome(
        reached=False, steps=450, seconds=20.0, measure=15.0, progress=0.5, finish_steps=800
    )

    def answer(_engine: object, request: RunWorkload) -> Iterator[object]:
        changes = {"outcome": late} if request.race.threads == 1 else {}
        yield from race_run(request, **changes)

    racing.scripts[RunWorkload] = answer
    run(qtbot, race)
    slow, fast = race.sides
    assert "50.0 against 22.5 steps a second" in race.verdict.finished.sentence
    assert race.pace_of(slow, race.clock.now_s) == 22.5
    assert race.pace_of(fast, race.clock.now_s) == 50.0
    assert race.pace_of(slow, 0.0) == 0.0

    moments: list[float] = []
    race.moment_changed.connect(lambda: moments.append(race.clock.now_s))
    race.replay()
    qtbot.waitUntil(lambda: not race.clock.is_replaying)
    assert len(moments) > 2
    assert max(moments) <= fast.end_s < slow.end_s


def test_another_choice_brings_the_question_back(qtbot: QtBot, race: Race) -> None:
    run(qtbot, race)

    race.choices.choose_picture("grow")

    assert race.sides == ()
    assert race.verdict is None
    assert race.raced.name == "grow"


def test_seeds_travel_with_the_pattern_alone(qtbot: QtBot, race: Race, engines: Engines) -> None:
    race.choices.add_seed(0.25, 1.5)
    run(qtbot, race)
    race.choices.choose_picture("grow")
    run(qtbot, race)

    seeds = [one.race.seeds for one in requests_of(engines)]
    assert seeds == [(), (), ((0.25, 1.0),), ((0.25, 1.0),)]
    race.choices.clear_seeds()
    assert race.choices.seeds == ()


def test_a_saved_race_is_a_ghost_to_race_against(
    qtbot: QtBot, race: Race, ready_studio: Studio, engines: Engines
) -> None:
    run(qtbot, race)
    order = order_of(race, ready_studio, _NOW)
    assert [picture.width for picture in order.pictures] == [64, 64]
    ghost = ghost_of(decode_shared(encode_shared(order.shared)))
    fastest = race.sides[1]

    race.choices.race_against(ghost, "learn", 128)
    run(qtbot, race)

    assert len(requests_of(engines)) == 3, "only one contestant ran again"
    assert race.sides[0] is ghost
    assert ghost.end_s == fastest.end_s
    assert ghost.at(ghost.end_s / 2).progress == pytest.approx(0.5)
    assert race.verdict.finished.contestants[0].recording == "saved 2026-11-22"
    assert "saved 2026-11-22" in race.words_of(0).text
    race.choices.choose_contestant(0, Contestant(device="cpu", threads=1))
    assert race.choices.ghost is None


def test_a_race_without_an_end_cannot_be_saved(race: Race, ready_studio: Studio) -> None:
    assert order_of(race, ready_studio, _NOW) is None


def test_a_saved_race_without_a_result_is_no_ghost(
    qtbot: QtBot, race: Race, ready_studio: Studio
) -> None:
    from msgspec.structs import replace

    run(qtbot, race)
    shared = order_of(race, ready_studio, _NOW).shared
    stripped = tuple(replace(one, result=None) for one in shared.runs)

    assert ghost_of(replace(shared, runs=stripped)) is None


def disturb(engines: Engines, folder: Path) -> None:
    """Let the sides' slices disagree, beside other programs."""
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, **(kept_busy(race_seconds(request) / 800) if request.race.threads else {})
    )


def test_a_race_without_a_verdict_beside_other_programs_is_run_again(
    qtbot: QtBot, race: Race, engines: Engines, tmp_path: Path
) -> None:
    disturb(engines, tmp_path)
    run(qtbot, race)
    assert race.verdict.is_kept_busy
    assert "other programs" in race.notice.sentence
    assert race.notice.action is Action.RUN_AGAIN

    engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    run(qtbot, race)
    assert race.notice.action is None


def test_a_race_from_a_file_is_not_run_again(
    qtbot: QtBot, race: Race, engines: Engines, tmp_path: Path
) -> None:
    disturb(engines, tmp_path)
    run(qtbot, race)
    for side in race.sides:
        side.origin = "recorded 2026-11-22"
    assert race.verdict.is_kept_busy
    assert race.notice.action is None


def test_two_pcs_race_one_after_the_other_to_one_finish_line(
    qtbot: QtBot, race: Race, attic: Pc, engines: Engines, other_pcs: OtherPcs, tmp_path: Path
) -> None:
    """The card's PC comes first."""
    picture = pictures_of(2)[1]

    def run_there(_engine: object, request: RunWorkload) -> Iterator[object]:
        for event in race_run(request):
            match event:
                case FrameReady():
                    yield msgspec.structs.replace(event, picture=PackedFrame.of(picture).packed)
                case _:
                    yield event

    other_pcs.engines.scripts[RunWorkload] = run_there
    (card,) = (one for one in race.choices.entries if one.label == "GT 1030 · attic")
    assert "CPU, 4 threads · attic" in [one.label for one in race.choices.entries]
    race.choices.choose_contestant(1, card.contestant)
    assert "on two PCs, one after the other" in race.notice.detail
    race.start()
    qtbot.waitUntil(lambda: race.verdict is not None)
    (there,) = [one for one in other_pcs.engines.requests if isinstance(one, RunWorkload)]
    (here,) = [one for one in engines.requests if isinstance(one, RunWorkload)]
    assert (there.device, there.calls) == ("attic/cuda:0", None)
    assert (here.device, here.calls) == ("cpu", race.sides[1].finish_steps)
    assert here.longest_s == race.sides[1].end_s
    shown = race.sides[1].at(race.clock.now_s)
    assert shown is not None
    assert (shown.picture.pixels == picture).all()
    assert race.verdict is not None
    assert "of attic" in race.verdict.finished.sentence
    assert "They ran on two PCs, so not in turns." in race.verdict.finished.sentence
