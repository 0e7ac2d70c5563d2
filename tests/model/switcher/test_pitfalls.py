from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, TorchCard
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, PitfallStarted, RunPitfall
from gpu_studio.model.switcher.pitfalls import PitfallsModel
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import gt_1030_card
from tests.fakes.switching_answers import pitfall, pitfall_finished

CARD = gt_1030_card().identity


@pytest.fixture
def model(engines, ready_studio):
    return PitfallsModel(ready_studio)


@pytest.fixture
def engine():
    return described()


with_a_card = pytest.mark.parametrize("engine", [described_with_cuda()])


@pytest.fixture
def engines(engines, engine):
    pitfalls = (pitfall("mixed_devices"), pitfall("tiny_model"))
    engines.scripts |= {
        DescribeEngine: [msgspec.structs.replace(engine, pitfalls=pitfalls)],
        RunPitfall: lambda _engine, request: [
            PitfallStarted(name=request.name, part=request.part, snippet="import torch\n"),
            pitfall_finished(request),
        ],
    }
    return engines


def test_the_pitfalls_are_the_engines(model):
    assert [one.name for one in model.pitfalls] == ["mixed_devices", "tiny_model"]
    assert [row.address for row in model.devices] == ["cpu"]
    assert model.can_run


@pytest.mark.parametrize("count", [1, 2])
def test_where_there_are_cards_they_are_the_devices(engines, studio, qtbot, count):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=count)]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert [row.address for row in PitfallsModel(studio).devices] == ["cuda:0", "cuda:1"][:count]


def test_a_card_without_code_in_this_pytorch_is_not_tried(engines, studio, qtbot):
    cards = (
        TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030", compute_capability="6.1"),
        TorchCard(torch_index=1, name="NVIDIA GeForce RTX 3060", compute_capability="8.6"),
    )
    engines.scripts[DescribeEngine] = [
        described_with_cuda(device_count=2, cards=cards, arch_list=("sm_75", "sm_86"))
    ]
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert [row.address for row in PitfallsModel(studio).devices] == ["cuda:1"]


def test_broken_and_fixed_are_kept_side_by_side(model, engines, qtbot):
    model.run("tiny_model", "broken", "cpu")
    assert model.running == RunPitfall(name="tiny_model", part="broken", device="cpu")
    assert not model.can_run
    model.run("tiny_model", "fixed", "cpu")  # one after the other
    qtbot.waitUntil(lambda: model.can_run)
    assert engines.requests[-1].part == "broken"
    assert model.tried("tiny_model").fixed is None
    model.run("tiny_model", "fixed", "cpu")
    qtbot.waitUntil(lambda: model.can_run)
    tried = model.tried("tiny_model")
    assert (tried.broken.part, tried.fixed.part) == ("broken", "fixed")
    assert tried.fixed_snippet == "# fixed\n"
    assert model.tried("mixed_devices").broken is None


@with_a_card
def test_what_was_seen_on_another_device_is_not_set_beside_it(model, qtbot):
    for part, device in (("broken", "cpu"), ("fixed", CARD)):
        model.run("tiny_model", part, device)
        qtbot.waitUntil(lambda: model.can_run)
    tried = model.tried("tiny_model")
    assert (tried.device, tried.broken) == ("cuda:0", None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            PitfallFailed(name="tiny_model", failure=Failure(FailureKind.NO_KERNEL, "No code.")),
            "No code. The Devices tab",  # the next step
        ),
        (EngineEnded(exit_code=-9), "ran out of memory (RAM)"),
    ],
)
def test_a_failure_is_reported_and_gone_with_the_next_try(model, engines, qtbot, answer, words):
    works = engines.scripts[RunPitfall]
    engines.scripts[RunPitfall] = [answer]
    model.run("tiny_model", "broken", "cpu")
    qtbot.waitUntil(lambda: words in model.tried("tiny_model").failure)
    engines.scripts[RunPitfall] = works
    qtbot.waitUntil(lambda: model.can_run)
    model.run("tiny_model", "broken", "cpu")
    assert not model.tried("tiny_model").failure
    qtbot.waitUntil(lambda: model.tried("tiny_model").broken is not None)
