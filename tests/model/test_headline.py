import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.memory_messages import ReadMemory
from gpu_studio.core.messages.run_messages import RunStopped, RunWorkload
from gpu_studio.core.notice import Action, Tone
from gpu_studio.model import sensors as sensors_module
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.headline import HeadlineModel
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import SteadySensors, cpu_only, gt_1030, reading, two_cards
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Pause
from tests.patience import limit

WITHOUT_PASCAL = described_with_cuda(torch_version="2.13.0+cu130", cuda_build="13.0",
                                     arch_list=("sm_75", "sm_86"))  # fmt: skip
DIES = [EngineEnded(exit_code=-11)]


@pytest.fixture
def model(studio):
    return studio.headlines


def start(qtbot, studio):
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state.is_idle and studio.sensors.inventory is not None)


def test_what_went_wrong_with_the_settings_is_reported(studio, model, settings):
    assert model.headline is None
    settings.trouble_reported.emit("Your settings cannot be saved.")
    assert model.headline.sentence == "Your settings cannot be saved."
    settings.trouble = "Your settings could not be used."
    again = HeadlineModel(studio.session, studio.sensors, studio.doctor, settings, parent=studio)
    assert again.headline.sentence == "Your settings could not be used."


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_without_code_is_the_headline_with_its_command(qtbot, studio, engines, model):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    with qtbot.waitSignal(model.headline_changed) as changed:
        start(qtbot, studio)
    headline = changed.args[0]
    assert headline is model.headline
    assert headline.code == "no_code_for_card"
    assert "GT 1030 (6.1)" in headline.sentence
    assert "cu126" in headline.command
    assert headline.tone == Tone.FAILURE
    assert headline.action is None


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_cpu_build_beside_a_card_is_reported(qtbot, studio, model):
    start(qtbot, studio)
    assert model.headline.code == "build_without_cuda"
    assert model.headline.tone == Tone.AMBER


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_dismissed_headline_stays_away_until_there_is_another(qtbot, studio, model):
    start(qtbot, studio)
    with qtbot.waitSignal(model.headline_changed) as changed:
        model.dismiss()
    assert changed.args == [None]
    studio.sensors.number_for(None)
    assert model.headline is None
    model.dismiss()
    assert model.headline is None


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_card_that_this_program_hides_makes_no_headline(qtbot, studio, engines, model):
    only = two_cards().cards[1].uuid
    engines.scripts[DescribeEngine] = [described_with_cuda(visible_devices=only)]
    start(qtbot, studio)
    assert model.headline.code == "hidden_by_environment"
    with qtbot.waitSignal(studio.session.engine_described):
        studio.session.restart(EngineEnvironment(visible_devices=only))
    assert model.headline is None


def test_an_engine_that_dies_is_reported_and_replaced(qtbot, studio, engines, model):
    start(qtbot, studio)
    engines.scripts[ReadMemory] = DIES
    studio.session.submit(ReadMemory(device="cpu"))
    qtbot.waitUntil(lambda: model.headline is not None)
    assert all(
        fact in model.headline.sentence
        for fact in ("PyTorch crashed", "signal 11", "results are still here")
    )
    assert model.headline.action is None
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
    assert model.headline is not None
    model.dismiss()
    assert model.headline is None


@pytest.mark.parametrize("is_success", [True, False])
def test_a_lost_engine_is_forgotten_once_another_has_done_its_work(
    qtbot, studio, engines, model, is_success
):
    start(qtbot, studio)
    engines.scripts[ReadMemory] = DIES
    with qtbot.waitSignal(studio.session.engine_described):
        studio.session.submit(ReadMemory(device="cpu"))
    assert model.headline.code == "engine_lost"
    request = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    stopped = RunStopped(run_id="1", samples=0)
    engines.scripts[RunWorkload] = [*run_events(request)] if is_success else [stopped]
    with qtbot.waitSignal(studio.session.submit(request).finished):
        pass
    assert (model.headline is None) is is_success


def test_an_engine_that_dies_again_and_again_can_be_started_again(qtbot, studio, engines, model):
    engines.scripts[DescribeEngine] = DIES
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state is EngineState.FAILED)
    qtbot.waitUntil(
        lambda: model.headline is not None and model.headline.action is Action.RESTART_ENGINE
    )
    assert model.headline.tone == Tone.FAILURE
    engines.scripts[DescribeEngine] = [described()]
    model.act()
    qtbot.waitUntil(lambda: studio.session.state.is_idle)
    assert model.headline is None


def test_an_engine_that_cannot_start_says_why(qtbot, studio, engines, model):
    failure = Failure(FailureKind.INTERNAL, "PyTorch is not installed.")
    engines.scripts[DescribeEngine] = [RequestFailed(failure=failure)]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state is EngineState.FAILED)
    assert model.headline.sentence == "PyTorch is not installed."
    assert model.headline.action is Action.RESTART_ENGINE


@pytest.mark.parametrize(("inventory", "blames_driver"), [(gt_1030(), True), (cpu_only(), False)])
def test_a_driver_that_was_not_asked_is_not_to_blame_for_silent_sensors(
    qtbot, studio, sensor_source, inventory, model, monkeypatch, blames_driver
):
    start(qtbot, studio)
    limit(monkeypatch, sensors_silence_ms=20)
    sensor_source.send(reading(inventory))
    qtbot.waitUntil(lambda: studio.sensors.is_silent)
    assert ("driver hangs" in model.headline.detail) == blames_driver


def test_silent_sensors_are_reported_each_time(qtbot, studio, sensor_source, model, monkeypatch):
    limit(monkeypatch, sensors_silence_ms=20)
    studio.start()
    qtbot.waitUntil(lambda: model.headline is not None)
    assert model.headline.code == "driver_not_answering"
    model.dismiss()
    assert model.headline is None
    limit(monkeypatch, sensors_silence_ms=3_600_000)
    sensor_source.send(reading(cpu_only()))
    qtbot.waitUntil(lambda: not studio.sensors.is_silent)
    limit(monkeypatch, sensors_silence_ms=20)
    sensor_source.send(reading(cpu_only()))
    qtbot.waitUntil(lambda: model.headline is not None)
    limit(monkeypatch, sensors_silence_ms=3_600_000)
    sensor_source.send(reading(cpu_only()))
    qtbot.waitUntil(lambda: model.headline is None)


class DyingSensors(SteadySensors):
    """A reader that ends at once until it is healed."""

    healed = False

    def readings(self):
        if self.healed:
            yield from super().readings()


def test_sensors_that_will_not_live_can_be_asked_for_again(qtbot, studio, model, monkeypatch):
    source = DyingSensors(cpu_only(), [reading(cpu_only())])
    monkeypatch.setattr(studio.sensors, "_source", source)
    monkeypatch.setattr(sensors_module, "_MOST_DEATHS", 1)
    studio.start()
    qtbot.waitUntil(lambda: model.headline is not None)
    assert "ended several times" in model.headline.sentence
    source.healed = True
    model.act()
    qtbot.waitUntil(lambda: studio.sensors.inventory is not None)
    qtbot.waitUntil(lambda: model.headline is None)


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_what_the_program_says_of_itself_comes_first_until_it_is_closed(
    qtbot, studio, engines, model
):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    model.notify("Something unexpected happened.", "The log says more.")
    start(qtbot, studio)
    assert model.headline.sentence == "Something unexpected happened."
    assert model.headline.detail == "The log says more."
    assert model.headline.sentence != studio.doctor.findings[0].sentence
    model.dismiss()
    assert model.headline.code == "no_code_for_card"
    assert model.headline.sentence == studio.doctor.findings[0].sentence
    # The same words once more are news.
    model.notify("Something unexpected happened.")
    assert model.headline.sentence == "Something unexpected happened."


@pytest.mark.parametrize(("inventory", "blames_driver"), [(gt_1030(), True), (cpu_only(), False)])
def test_an_engine_that_never_gets_ready_is_reported_until_it_is(
    qtbot, studio, engines, model, blames_driver
):
    engines.scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    model._start.setInterval(3_600_000)
    studio.start()
    qtbot.waitUntil(lambda: studio.sensors.inventory is not None and model._start.isActive())
    with qtbot.waitSignal(model.headline_changed):
        model._start.start(0)
    assert model.headline.code == "engine_slow"
    # A PC without a driver is not told that the driver hangs.
    assert ("driver" in model.headline.detail) == blames_driver
    assert ("log" in model.headline.detail) != blames_driver
    engines.latest.go()
    qtbot.waitUntil(lambda: model.headline is None)
