"""Which device is looked at, its verdict, and what is known of it."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices.devices import ASLEEP, CardReading, Reading
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.notice import Tone
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.model.engine_session import EngineState
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030, reading, two_cards
from tests.fakes.scripted_engine import Pause
from tests.model.devices.looking import start
from tests.patience import limit

# ── which device ───────────────────────────────────────────────────────────────────────────────


def test_before_anything_is_found_it_says_that_it_looks(model):
    assert model.device is None
    assert model.groups == ()
    assert model.spans == ()
    assert model.has_cards is None
    assert model.report("text", masked=True) == ""
    assert model.verdict.code == "waiting"


@pytest.mark.parametrize("inventory", [two_cards()])
def test_the_first_card_that_pytorch_sees_is_shown_first(qtbot, studio, with_cuda, model):
    second = two_cards().cards[1]
    with_cuda.scripts[DescribeEngine] = [described_with_cuda(visible_devices=second.uuid)]
    start(qtbot, studio)
    assert model.device.identity == second.identity


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_card_that_is_gone_gives_way_to_another(qtbot, studio, sensor_source, with_cuda, model):
    start(qtbot, studio)
    model.select(two_cards().cards[1].identity)
    sensor_source.send(gt_1030())
    qtbot.waitUntil(lambda: len(model.devices_of(studio.pcs.here)) == 1)
    assert model.device.identity == gt_1030().cards[0].identity


# ── the verdict ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [two_cards()])
def test_each_device_has_its_own_verdict(qtbot, studio, with_cuda, model):
    with_cuda.scripts[DescribeEngine] = [described_with_cuda(arch_list=("sm_86",), device_count=2)]
    start(qtbot, studio)
    gt, rtx = two_cards().cards
    model.select(gt.identity)
    assert (model.verdict.code, model.verdict.tone) == ("no_code_for_card", Tone.FAILURE)
    model.select(rtx.identity)
    assert (model.verdict.code, model.verdict.tone) == ("ok", Tone.GOOD)
    model.select("cpu")
    assert "Ryzen 7 5700G" in model.verdict.sentence
    assert model.verdict.tone == Tone.GOOD


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_where_pytorch_does_not_start_its_facts_are_unknown(qtbot, studio, engines, model):
    failure = Failure(FailureKind.INTERNAL, "No torch here.")
    engines.scripts[DescribeEngine] = [Pause(), RequestFailed(failure=failure)]
    studio.start()
    qtbot.waitUntil(lambda: model.device is not None and engines.latest.paused.is_set())
    with qtbot.waitSignal(
        model.changed, check_params_cb=lambda: studio.session.state is EngineState.FAILED
    ):
        engines.latest.go()
    assert model.verdict.sentence.startswith("PyTorch did not start")


def test_sensors_that_never_answer_are_reported(qtbot, studio, sensor_source, model, monkeypatch):
    limit(monkeypatch, sensors_start_ms=20)
    sensor_source._events.clear()
    with qtbot.waitSignal(studio.sensors.silence_changed):
        studio.start()
    assert model.verdict.code == "unknown"
    assert "could not be read" in model.verdict.sentence


# ── what arrives ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_sleeping_card_shows_its_last_reading(
    qtbot, studio, sensor_source, inventory, with_cuda, model
):
    start(qtbot, studio)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensor_source.send(reading(inventory, 1.0, temperature_c=77.0))
    (card,) = inventory.cards
    asleep = msgspec.structs.replace(card, unreadable=ASLEEP, unreadable_code="asleep")
    with qtbot.waitSignal(studio.sensors.inventory_changed):
        sensor_source.send(msgspec.structs.replace(inventory, devices=(inventory.cpu, asleep)))
    last = CardReading(uuid=card.identity, telemetry=Telemetry(), error=ASLEEP, error_code="asleep")
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensor_source.send(Reading(taken_at_s=2.0, cpu=Telemetry(), cards=(last,)))
    assert model.trouble.startswith(ASLEEP)
    assert "Last read at" in model.trouble
    assert "77" in model.trouble
