import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.model.pc import Pc
from gpu_studio.model.race.race import Race
from gpu_studio.model.studio import Studio
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.other_pcs import OtherPcs
from tests.fakes.pc import two_cards
from tests.fakes.race_answers import race_run
from tests.fakes.scripted_engine import Engines

with_cards = pytest.mark.parametrize("inventory", [two_cards()])


def run(qtbot: QtBot, race: Race) -> None:
    race.start()
    qtbot.waitUntil(lambda: race.verdict is not None)


def choose(race: Race, side: int, label: str) -> None:
    value = dict(race.contestants(side))[label]
    race.choose(**{("left", "right")[side]: value})


def requests_of(engines: Engines) -> list[RunWorkload]:
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


@pytest.fixture
def with_a_card(racing: Engines) -> Engines:
    racing.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    return racing


@pytest.mark.usefixtures("with_a_card")
@with_cards
def test_a_chosen_card_stays_chosen_when_it_gets_another_number(
    qtbot: QtBot, racing: Engines, studio: Studio, race: Race, inventory: Inventory
) -> None:
    second = inventory.cards[1].uuid
    choose(race, 0, "RTX 3060")
    choose(race, 1, "CPU, 4 threads")
    alone = described_with_cuda(device_count=1, visible_devices=second)
    racing.scripts[DescribeEngine] = [alone]
    studio.session.restart(EngineEnvironment(visible_devices=second))
    qtbot.waitUntil(lambda: studio.session.is_free)
    left, right = race.chosen
    assert (left.label, left.contestant.device) == ("RTX 3060", "cuda:0")
    assert right.contestant == Contestant(device="cpu")


def test_the_lever_stops_a_race_and_runs_the_last_size(
    qtbot: QtBot, race: Race, racing: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    race._settling.setInterval(0)
    racing.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, pause_after=4 if request.size == 128 else None
    )
    race.start()
    qtbot.waitUntil(lambda: racing.latest.paused.is_set())

    race.choose(size=64)
    race.choose(size=32)
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


def test_another_choice_brings_the_question_back(qtbot: QtBot, race: Race) -> None:
    run(qtbot, race)
    race.choose(picture="grow")
    assert (race.sides, race.verdict, race.raced.name) == ((), None, "grow")
    assert all(lane.is_to_come for lane in race.moment(("cpu", "cpu")).lanes())


def test_the_devices_of_another_pc_race_there(
    qtbot: QtBot, race: Race, attic: Pc, racing: Engines, other_pcs: OtherPcs
) -> None:
    """Two PCs cannot take turns: with one device there, both sides are."""
    other_pcs.engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    names = [one.label for one in race.entries]
    assert {"CPU, 4 threads · attic", "GT 1030 · attic"} < set(names)
    assert all("attic" not in one.label for one in race.chosen)
    choose(race, 1, "GT 1030 · attic")
    assert [one.label for one in race.chosen] == [
        "CPU, 4 threads · attic", "GT 1030 · attic",
    ]  # fmt: skip
    run(qtbot, race)
    assert [one.device for one in requests_of(other_pcs.engines)] == ["attic/cpu", "attic/cuda:0"]
    assert not requests_of(racing)
    assert "of attic" in race.verdict.finished.sentence
    choose(race, 0, "CPU, 1 thread")
    assert all("attic" not in one.label for one in race.chosen)
