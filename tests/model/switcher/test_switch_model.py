"""Switching to a device: which is used, which are visible, what moved there, and the proof."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, RequestFailed
from gpu_studio.core.messages.placement_messages import PlaceModel, UseDevice
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.model.switcher.switch_model import SwitchModel
from tests.driving.window import plain
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, reading, rtx_3060_card, two_cards
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import place_finished, place_row

FIRST, SECOND = gt_1030_card().identity, rtx_3060_card().identity


def idle(qtbot, model):
    qtbot.waitUntil(lambda: model.parent().session.is_free and model.can_choose)


def words(model, identity):
    return next(one for one in model.devices if one.identity == identity)


def moved(engines):
    return [one for one in engines.requests if isinstance(one, PlaceModel)]


# ── devices ──────────────────────────────────────────────────────────────────────────────────────


def test_every_card_and_the_cpu_are_there_and_the_current_card_is_in_use(model):
    assert [(one.number, one.name, one.address) for one in model.devices] == [
        ("cuda:0", "GT 1030", "cuda:0"),
        ("cuda:1", "RTX 3060", "cuda:1"),
        ("cpu", "Ryzen 7 5700G", "cpu"),
    ]
    assert [one.is_used for one in model.devices] == [True, False, False]
    assert [bool(one.use) for one in model.devices] == [False, True, True]


def test_free_memory_is_live(model, sensor_source, inventory, qtbot):
    assert plain(words(model, FIRST).facts) == "cuda:0 · 2 GiB"
    sensor_source.send(reading(inventory))
    qtbot.waitUntil(lambda: "1.66 of 2 GiB free" in plain(words(model, FIRST).facts))


def test_new_tensors_and_the_model_go_to_the_device_that_is_used(model, engines, qtbot):
    model.use(SECOND)
    assert words(model, SECOND).use == "Switching…"
    assert not any(one.can_use for one in model.devices), "one at a time"
    idle(qtbot, model)
    assert engines.requests[-2:] == [
        UseDevice(device="cuda:1"), PlaceModel(model="linear_10", device="cuda:1"),
    ]  # fmt: skip
    assert model.said.sentence == "New “cuda” tensors go to cuda:1 GeForce RTX 3060 now."
    assert "same output" in model.proof.sentence
    assert model.tone is Tone.GOOD
    assert [one.is_used for one in model.devices] == [False, True, False]


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_with_one_card_the_cpu_is_the_second_choice(model, engines, qtbot):
    assert not model.has_several_cards
    assert not any(one.only for one in model.devices)
    model.use("cpu")
    idle(qtbot, model)
    assert not any(isinstance(one, UseDevice) for one in engines.requests)
    assert moved(engines) == [PlaceModel(model="linear_10", device="cpu")]
    assert words(model, "cpu").is_used


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            RequestFailed(failure=Failure(FailureKind.NO_CUDA, "PyTorch finds no driver.")),
            "PyTorch finds no driver. The Devices tab",
        ),
        (EngineEnded(exit_code=-6), "signal 6"),
    ],
)
def test_a_switch_that_fails_says_why_and_moves_nothing(
    model, scripts, engines, qtbot, answer, sentence
):
    scripts[UseDevice] = [answer]
    model.use(SECOND)
    qtbot.waitUntil(lambda: sentence in model.said.sentence)
    assert model.tone is Tone.FAILURE
    idle(qtbot, model)
    assert words(model, FIRST).is_used
    assert not moved(engines)
    assert words(model, SECOND).can_use


def test_showing_one_card_starts_pytorch_with_its_uuid_and_there_is_a_way_back(
    model, engines, qtbot
):
    assert not model.show_all_label
    model.show_only(SECOND)
    assert engines.latest.environment.visible_devices == SECOND
    assert words(model, SECOND).only == "Starting PyTorch…"
    qtbot.waitUntil(lambda: words(model, SECOND).number == "cuda:0")
    hidden = words(model, FIRST)
    assert (hidden.number, hidden.use, hidden.warning) == ("hidden", "", "")
    assert "hidden by CUDA_VISIBLE_DEVICES" in hidden.facts
    assert model.said.sentence == "PyTorch sees 1 card now."
    idle(qtbot, model)
    assert words(model, SECOND).is_used
    assert not words(model, SECOND).only, "it is shown alone already"
    model.show_all()
    assert engines.latest.environment.visible_devices is None
    assert model.show_all_label == "Starting PyTorch…"
    qtbot.waitUntil(lambda: words(model, SECOND).number == "cuda:1")
    assert model.said.sentence == "PyTorch sees 2 cards now."
    idle(qtbot, model)
    assert not model.can_show_all


def test_showing_one_card_ends_no_run(model, scripts, engines, qtbot):
    scripts[RunWorkload] = [Pause()]
    request = RunWorkload(run_id="r", workload="w", device="cpu", size=1, dtype="float32")
    reply = model.parent().session.submit(request)
    qtbot.waitUntil(engines.latest.paused.is_set)
    assert not words(model, SECOND).can_show_only
    model.show_only(SECOND)
    assert len(engines.made) == 1
    reply.stop()
    idle(qtbot, model)
    assert words(model, SECOND).can_show_only


def test_a_card_without_a_uuid_cannot_be_shown_alone(scripts, studio, sensor_source, qtbot):
    nameless = msgspec.structs.replace(
        two_cards(), devices=(*two_cards().devices[:2], rtx_3060_card(uuid=None))
    )
    sensor_source._events[0] = nameless
    model = SwitchModel(studio, studio)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    assert [bool(one.only) for one in model.devices] == [True, False, False]


def test_without_a_sensor_reader_the_cards_are_those_that_pytorch_counts(
    scripts, studio, sensor_source, engines, qtbot
):
    sensor_source._events.clear()
    model = SwitchModel(studio, studio)
    assert not model.devices
    assert model.used is None
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and len(model.devices) == 3)
    model.use("cuda:1")
    qtbot.waitUntil(lambda: words(model, "cuda:1").is_used)
    assert UseDevice(device="cuda:1") in engines.requests
    idle(qtbot, model)


@pytest.mark.parametrize(
    ("inventory", "describes", "warning"),
    [
        (
            two_cards(), described_with_cuda(device_count=2, arch_list=("sm_75", "sm_86")),
            "This PyTorch has no code for your GT 1030 (6.1)",
        ),
        (gt_1030(), described(), "CPU-only"),
    ],
)  # fmt: skip
def test_a_card_that_pytorch_cannot_use_says_why_and_has_no_button(
    scripts, studio, engines, qtbot, describes, warning
):
    scripts[DescribeEngine] = [describes]
    model = SwitchModel(studio, studio)
    studio.start()
    # Before PyTorch has described itself, the CPU may be alone.
    qtbot.waitUntil(
        lambda: any(one.identity == FIRST and one.warning != "" for one in model.devices)
    )
    assert warning in words(model, FIRST).warning
    assert not words(model, FIRST).use
    qtbot.waitUntil(lambda: studio.session.is_free)
    model.use(FIRST)
    assert not any(isinstance(one, UseDevice) for one in engines.requests)


def test_the_code_uses_the_device_as_this_pytorch_sees_it(model, qtbot):
    model.use(SECOND)
    idle(qtbot, model)
    code = model.code
    assert code.index('"CUDA_DEVICE_ORDER"') < code.index("import torch")
    assert 'device = torch.device("cuda:1")\ntorch.cuda.set_device(device)' in code
    assert f"CUDA_VISIBLE_DEVICES={SECOND}" in code
    compile(code, "code", "exec")
    model.use("cpu")
    idle(qtbot, model)
    assert 'torch.device("cpu")' in model.code
    assert "set_device" not in model.code


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_without_a_card_the_cpu_is_the_only_device_and_the_page_says_why(model):
    assert [one.use for one in model.devices] == [""]
    assert "only device here" in model.why
    assert model.move_label == "Move to cpu"


def test_while_pytorch_makes_room_for_a_check_the_page_says_so(model, qtbot):
    assert model.why.startswith("Press “Move to cuda:0”")
    session = model.parent().session
    session.release()
    assert model.why == "This waits until the check or the installation ends."
    assert not model.can_move
    session.restart()
    assert model.why == "PyTorch is starting."
    idle(qtbot, model)


# ── moving ───────────────────────────────────────────────────────────────────────────────────────


def test_what_moved_can_move_back(model, engines, qtbot):
    assert model.move_label == "Move to cuda:0"
    model.move()
    assert model.move_label == "Moving…"
    idle(qtbot, model)
    assert model.said.sentence == "Linear(10, 10) is on cuda:0 now."
    assert model.move_label == "Move back to cpu"
    model.move()
    idle(qtbot, model)
    assert [one.device for one in moved(engines)] == ["cuda:0", "cpu"]
    model.choose(thing="convnet")
    assert model.move_label == "Move to cuda:0"
    assert not model.moved, "that of another model"
    assert not model.proof.sentence


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (
            RequestFailed(failure=Failure(FailureKind.NO_KERNEL, "No code for this card.")),
            "No code for this card. The Devices tab names the build",
        ),
        (EngineEnded(exit_code=-11), "signal 11"),
        (place_finished(same_output=False, largest_difference=0.5), "different output"),
    ],
)
def test_a_move_that_fails_keeps_its_rows(model, scripts, qtbot, ending, sentence):
    scripts[PlaceModel] = [place_row(), ending]
    model.move()
    qtbot.waitUntil(lambda: sentence in model.proof.sentence)
    assert model.tone is Tone.FAILURE
    assert len(model.moved) == 1
    idle(qtbot, model)
    assert model.can_move


def test_pytorch_that_started_anew_has_the_model_no_longer(model, qtbot):
    model.move()
    idle(qtbot, model)
    model.parent().session.restart()
    qtbot.waitUntil(lambda: "the model is gone" in model.proof.sentence)
    assert not model.said.sentence, "it is not there now"
    assert len(model.moved) == 2, "the result stays"
    assert model.move_label == "Move to cuda:0"


def test_a_tensor_is_told_with_its_devices_and_what_it_is(model, scripts, qtbot):
    scripts[PlaceModel] = [
        place_row("conv.weight", (32, 3, 3, 3)),
        place_row("count", (), dtype="int64", bytes=8, kind="buffer"),
        place_finished(),
    ]
    model.move()
    idle(qtbot, model)
    weight, count = model.placed
    assert [plain(one.text) for one in weight] == [
        "conv.weight", "32 × 3 × 3 × 3", "float32", "3,456", "cpu", "cuda:0",
    ]  # fmt: skip
    assert [one.device for one in weight] == ["", "", "", "", "cpu", "cuda:0"]
    assert count[1].text == "scalar"
    assert {one.value for one in weight} == {
        "conv.weight: parameter (learned in training), float32"
    }
    assert count[0].value == "count: buffer (kept, but not learned), int64"
