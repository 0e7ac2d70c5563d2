from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import PitfallFinished, PitfallStarted, RunPitfall
from gpu_studio.core.messages.placement_messages import (
    PlaceFinished,
    PlaceModel,
    PlaceRow,
    UseDevice,
)
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.switcher.placement import MODELS
from tests.engine.answers import only
from tests.engine.engine_child import EngineChild
from tests.soft.conftest import MakeChild, MakePc
from tests.softcards.cards import MIB, SoftPc
from tests.softcards.catalogue import GT_1030, GTX_1650, RTX_3060

BUFFERS = [
    "1.running_mean", "1.running_var", "1.num_batches_tracked", "5.running_mean", "5.running_var",
    "5.num_batches_tracked",
]  # fmt: skip
NAMES = [pitfall.description.name for pitfall in PITFALLS]


@pytest.fixture
def pc(soft_pc: MakePc) -> SoftPc:
    """Two different cards, the slower one first on the bus."""
    return soft_pc(GTX_1650, RTX_3060)


@pytest.fixture
def engine(pc: SoftPc, tmp_path: Path) -> Iterator[EngineChild]:
    one = EngineChild(tmp_path / "log", env={**pc.env, **EngineEnvironment().variables()})
    yield one
    one.kill()


def test_the_conv_nets_buffers_move_across_two_cards(engine: EngineChild) -> None:
    before = "cpu"
    for device in ("cuda:1", "cuda:0", "cuda:1", "cpu"):
        events = engine.ask(PlaceModel(model="convnet", device=device))
        rows = {row.name: row for row in only(PlaceRow, events)}
        assert [name for name, row in rows.items() if row.kind == "buffer"] == BUFFERS
        for name in BUFFERS:
            assert (rows[name].device_before, rows[name].device_after) == (before, device), name
        assert events[-1].output_device == device
        before = device


def test_a_move_reports_what_it_took_of_allocator_and_card(engine: EngineChild) -> None:
    first = engine.ask(PlaceModel(model="linear_1000", device="cuda:1"))[-1]
    assert isinstance(first, PlaceFinished)
    assert first.moved_bytes == (1000 * 500 + 500) * 4
    rounded = 1000 * 500 * 4 // 512 * 512 + 512 + 2048
    assert first.allocated_delta_bytes == rounded
    # More than 1 MiB comes from a segment of 20 MiB, less from one of 2 that is there already.
    assert first.reserved_delta_bytes == 20 * MIB
    assert first.card_delta_bytes == 20 * MIB
    again = engine.ask(PlaceModel(model="linear_1000", device="cuda:1"))[-1]
    assert (again.allocated_delta_bytes, again.card_delta_bytes) == (0, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_pitfall_runs_on_the_second_card_and_nothing_stands_in(
    engine: EngineChild, pc: SoftPc, name: str
) -> None:
    events = engine.ask(RunPitfall(name=name, device="cuda:1"))
    finished = events[-1]
    assert isinstance(finished, PitfallFinished), finished
    assert [event.part for event in only(PitfallStarted, events)] == ["broken", "fixed"]
    for outcome in (finished.broken, finished.fixed):
        assert outcome.sentence
        assert not outcome.stand_in
    for snippet in (finished.broken_snippet, finished.fixed_snippet):
        assert "cuda" in snippet or name in ("model_on_cpu", "fresh_results")
        if "cuda" in snippet:
            assert 'os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"' in snippet
    first, second = pc.use_of(engine.process.pid).cards
    assert first.contexts == 0
    assert second.contexts == 1
    assert engine.process.poll() is None
    EXPECTED.get(name, lambda _: None)(finished)


def _mixed(finished: PitfallFinished) -> None:
    assert "cuda:1" in finished.broken.error
    assert "cpu" in finished.broken.error
    assert "cuda:1" in finished.fixed.sentence


def _memory(finished: PitfallFinished) -> None:
    assert finished.broken.error.startswith("OutOfMemoryError: CUDA out of memory")
    assert "allowed" in finished.broken.error  # by the budget: the card itself is not full
    assert "this pitfall may use" in finished.broken.sentence
    figures = {one.name: one.value for one in finished.fixed.figures}
    assert figures["peak_no_grad_bytes"] < figures["peak_bytes"]


def _too_late(finished: PitfallFinished) -> None:
    assert "NVIDIA GeForce GTX 1650, and is the same card after" in finished.broken.sentence
    assert "“cuda” is the NVIDIA GeForce RTX 3060" in finished.fixed.sentence
    assert finished.fixed.figures[0].value == 1


def _kept(finished: PitfallFinished) -> None:
    assert finished.broken.figures[0].value == 64 * MIB
    assert finished.fixed.figures[0].value == 0


EXPECTED: dict[str, Any] = {
    "mixed_devices": _mixed,
    "out_of_memory": _memory,
    "visible_devices_too_late": _too_late,
    "exception_keeps_tensors": _kept,
}


def test_the_only_card_is_hidden_in_time_and_not_too_late(soft_pc: MakePc, tmp_path: Path) -> None:
    pc = soft_pc(GTX_1650)
    one = EngineChild(tmp_path / "one", env={**pc.env, **EngineEnvironment().variables()})
    finished = one.ask(RunPitfall(name="visible_devices_too_late", device="cuda:0"))[-1]
    one.kill()
    assert "is the same card after" in finished.broken.sentence
    assert "hides the card: “cuda” fails" in finished.fixed.sentence


def test_a_card_without_code_in_this_pytorch_is_named_all_the_same(
    soft_pc: MakePc, tmp_path: Path
) -> None:
    pc = soft_pc(GT_1030, RTX_3060)  # the newest PyTorch has no code for the first
    engine = EngineChild(tmp_path / "two", env={**pc.env, **EngineEnvironment().variables()})
    finished = engine.ask(RunPitfall(name="visible_devices_too_late", device="cuda:1"))[-1]
    engine.kill()
    assert "NVIDIA GeForce GT 1030, and is the same card after" in finished.broken.sentence


def test_every_snippet_that_names_a_card_runs(
    engine: EngineChild, pc: SoftPc, child: MakeChild
) -> None:
    requests: list[Any] = [DescribeEngine(), UseDevice(device="cuda:1")]
    requests += [
        PlaceModel(model=model.description.name, device="cuda:1", dtype=dtype)
        for model in MODELS
        for dtype in ("", "float16")
    ]
    one = child(pc)
    for request in requests:
        snippet = engine.ask(request)[-1].snippet
        assert snippet.startswith('import os\n\nos.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"')
        one.run(f"torch.backends.cudnn.enabled = False\n{snippet}")


# These are run as scripts by their pitfall, or train for longer than a test should.
_ALONE = (
    "starved_gpu",
    "visible_devices_too_late",
    "sticky_error",
    "out_of_memory",
    "fresh_results",
)


@pytest.mark.parametrize("part", ["broken", "fixed"])
def test_every_pitfalls_snippet_runs_on_a_card(pc: SoftPc, child: MakeChild, part: str) -> None:
    one = child(pc)
    for pitfall in PITFALLS:
        name = pitfall.description.name
        if name in _ALONE or (name, part) == ("mixed_devices", "broken"):
            continue
        one.run(pitfall.snippet(part, "cuda:1"))
