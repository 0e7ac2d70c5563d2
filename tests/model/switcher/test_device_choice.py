"""Devices to choose from: the current card, or the only visible one."""

from __future__ import annotations

import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import UseDevice
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.model.switcher.device_choice import DeviceChoice
from gpu_studio.model.switcher.placement_model import PlacementModel
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import gt_1030, reading, rtx_3060_card, two_cards
from tests.fakes.scripted_engine import Pause

SECOND = rtx_3060_card().uuid


def plain(text):
    return text.replace("\u202f", " ")


def idle(qtbot, choice):
    qtbot.waitUntil(lambda: choice.parent().session.state.is_idle)


def words(choice, place):
    return choice.words_of(choice.rows[place])


def test_the_cpu_and_every_card_are_rows(choice):
    listed = [(choice.words_of(row), row.address) for row in choice.rows]
    assert [(one.number, one.name, address) for one, address in listed] == [
        ("cpu", "Ryzen 7 5700G", "cpu"),
        ("cuda:0", "GT 1030", "cuda:0"),
        ("cuda:1", "RTX 3060", "cuda:1"),
    ]
    assert "always available" in words(choice, 0).facts
    assert "current by default" in words(choice, 1).facts
    assert words(choice, 0).about == ""
    about = words(choice, 1).about
    assert all(part in about for part in ("cuda:0", "monitor", "6.1", "can use it"))
    assert choice.chosen.address == "cuda:0"


def test_free_memory_is_live(choice, sensor_source, inventory, qtbot):
    assert plain(words(choice, 1).facts).startswith("2 GiB")
    sensor_source.send(reading(inventory))
    qtbot.waitUntil(lambda: plain(words(choice, 1).facts).startswith("1.66 GiB of 2 GiB free"))


def test_the_chosen_card_is_used(choice, engines, qtbot):
    choice.choose(SECOND)
    assert choice.can_use
    choice.use()
    assert not choice.can_use, "one at a time"
    qtbot.waitUntil(lambda: choice.notice.sentence != "")
    assert choice.notice.tone is Tone.GOOD
    assert "cuda:1 GeForce RTX 3060" in choice.notice.sentence
    assert engines.requests[-1] == UseDevice(device="cuda:1")
    idle(qtbot, choice)
    assert choice.rows[2].is_current
    assert not choice.rows[1].is_current
    assert choice.can_use


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (FailureKind.NO_CUDA, "CUDA is not available: PyTorch finds no NVIDIA driver on this PC."),
        (FailureKind.NO_SUCH_DEVICE, "cuda:1 is not there: this PC has cuda:0."),
    ],
)
def test_the_two_errors_of_choosing_keep_the_engines_sentence(
    choice, scripts, qtbot, kind, sentence
):
    scripts[UseDevice] = [RequestFailed(failure=Failure(kind, sentence))]
    choice.choose(SECOND)
    choice.use()
    qtbot.waitUntil(lambda: choice.notice.tone == Tone.FAILURE)
    assert choice.notice.sentence.startswith(sentence)
    assert choice.rows[1].is_current
    assert choice.can_use


def test_an_engine_that_dies_while_a_card_is_chosen_is_reported(choice, scripts, qtbot):
    scripts[UseDevice] = [EngineEnded(exit_code=-6)]
    choice.use()
    qtbot.waitUntil(lambda: choice.notice.tone == Tone.FAILURE)
    assert "signal 6" in choice.notice.sentence
    idle(qtbot, choice)
    assert choice.can_use


def test_the_cpu_has_no_number_to_be_used_by(choice, engines):
    choice.choose("cpu")
    assert not choice.can_use
    assert not choice.can_show_only
    before = len(engines.requests)
    choice.use()
    choice.show_only()
    assert len(engines.requests) == before
    assert len(engines.made) == 1


def test_showing_one_card_is_a_fresh_engine_with_its_uuid(choice, engines, qtbot):
    choice.choose(SECOND)
    choice.show_only()
    assert engines.latest.environment.visible_devices == SECOND
    qtbot.waitUntil(lambda: words(choice, 2).number == "cuda:0")
    assert words(choice, 1).number == "hidden"
    assert "hidden by CUDA_VISIBLE_DEVICES" in words(choice, 1).facts
    assert choice.rows[1].address is None
    assert words(choice, 1).warning == ""
    assert "sees 1 card." in choice.notice.sentence
    idle(qtbot, choice)
    assert not choice.can_show_only, "it is shown alone already"
    choice.show_all()
    assert engines.latest.environment.visible_devices is None
    qtbot.waitUntil(lambda: words(choice, 2).number == "cuda:1")
    assert "sees 2 cards." in choice.notice.sentence
    idle(qtbot, choice)
    assert not choice.can_show_all


def test_a_hidden_card_can_be_shown_but_not_used(choice, qtbot):
    choice.choose(SECOND)
    choice.show_only()
    qtbot.waitUntil(lambda: words(choice, 1).number == "hidden")
    idle(qtbot, choice)
    choice.choose(choice.rows[1].identity)
    assert not choice.can_use
    assert not PlacementModel(choice.parent(), choice, choice).can_place
    assert choice.can_show_only


def test_showing_one_card_ends_no_run(choice, scripts, engines, qtbot):
    scripts[RunWorkload] = [Pause()]
    request = RunWorkload(run_id="r", workload="w", device="cpu", size=1, dtype="float32")
    session = choice.parent().session
    reply = session.submit(request)
    qtbot.waitUntil(engines.latest.paused.is_set)
    assert not choice.can_show_only
    choice.show_only()
    assert len(engines.made) == 1
    reply.stop()
    idle(qtbot, choice)
    assert choice.can_show_only


def test_a_card_without_a_uuid_cannot_be_shown_alone(scripts, studio, sensor_source, qtbot):
    import msgspec

    nameless = msgspec.structs.replace(
        two_cards(), devices=(*two_cards().devices[:2], rtx_3060_card(uuid=None))
    )
    sensor_source._events[0] = nameless
    choice = DeviceChoice(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    choice.show_only()
    qtbot.waitUntil(lambda: words(choice, 2).number == "hidden" and choice.can_show_all)
    choice.choose(choice.rows[2].identity)
    assert not choice.can_show_only


def test_without_a_sensor_reader_the_cards_are_those_the_engine_counts(
    scripts, studio, sensor_source, engines, qtbot
):
    sensor_source._events.clear()
    choice = DeviceChoice(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and len(choice.rows) == 3)
    assert [row.number for row in choice.rows] == ["cpu", "cuda:0", "cuda:1"]
    assert choice.chosen.address == "cuda:0"
    choice.choose("cuda:1")
    choice.use()
    qtbot.waitUntil(lambda: choice.rows[2].is_current)
    assert engines.requests[-1] == UseDevice(device="cuda:1")
    qtbot.waitUntil(lambda: studio.session.is_free)


def test_a_card_without_code_says_so_in_the_words_of_the_devices_tab(
    scripts, studio, qtbot, engines
):
    scripts[DescribeEngine] = [described_with_cuda(device_count=2, arch_list=("sm_75", "sm_86"))]
    choice = DeviceChoice(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: len(choice.rows) == 3 and words(choice, 1).warning != "")
    assert words(choice, 1).warning.startswith("This PyTorch has no code for your GT 1030 (6.1)")
    assert words(choice, 2).warning == ""


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_that_this_pytorch_cannot_use_keeps_its_number_and_says_why(
    scripts, studio, engines, qtbot
):
    scripts[DescribeEngine] = [described()]
    choice = DeviceChoice(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: len(choice.rows) == 2 and words(choice, 1).warning != "")
    row = choice.rows[1]
    assert row.address is None
    assert "CPU-only" in words(choice, 1).warning
    assert choice.chosen.identity == "cpu"
    choice.choose(row.identity)
    assert choice.can_use, "the engine says in its own words what is missing"
    assert not PlacementModel(studio, choice, choice).can_place
