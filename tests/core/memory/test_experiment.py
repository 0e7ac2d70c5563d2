import threading
from typing import Any

import msgspec
import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.experiment import run_experiment
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.modelled_memory import ModelledMemory, ModelledTensor
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.memory_messages import (
    MOST_BLOCKS,
    AllocationPlan,
    MemoryRead,
    OomFinished,
    RunMemoryExperiment,
    SegmentsRead,
)
from gpu_studio.core.units import format_bytes
from tests.engine.answers import only


@pytest.mark.parametrize(
    ("plan", "outcome", "tensors"),
    [
        ({"size": 1024, "count": 4}, "fits", 4),
        ({"size": 8192}, "over_budget", 5),
        ({"size": 8192, "dtype": "float16"}, "over_budget", 11),
    ],
)
def test_the_sliders(plan: dict[str, Any], outcome: str, tensors: int):
    _, finished = run(experiment("custom", plan=AllocationPlan(**plan)))
    assert (finished.outcome, finished.tensors) == (outcome, tensors)


def test_ten_thousand_blocks_are_sent_and_the_rest_is_counted():
    events, finished = run(experiment("many_small", "model:8000", whole_card=True))
    read = only(SegmentsRead, events)[-1]
    assert 0.9 * MOST_BLOCKS < len(read.block_sizes) <= MOST_BLOCKS
    assert sum(read.sizes) + 2 * MIB * read.left_out_segments == finished.reserved_bytes


def test_stopping_frees_everything():
    stop = threading.Event()
    request = experiment("many_small", reads_every_step=True)
    events = []
    for event in run_experiment(request, ModelledMemory(card_at("model:1996")), stop):
        events.append(event)
        if isinstance(event, MemoryRead) and event.step == 5:
            stop.set()
    assert events[-1].outcome == "stopped"
    assert events[-1].tensors == 5
    assert events[-2].allocated_bytes == 0


def test_closing_the_events_frees_everything():
    card = ModelledMemory(card_at("model:1996"))
    events = run_experiment(experiment("gt1030", reads_every_step=True), card, threading.Event())
    for event in events:
        if isinstance(event, MemoryRead) and event.step == 3:
            break
    assert card.read().allocated_bytes == 3 * 256 * MIB
    events.close()
    assert card.read().allocated_bytes == 0
    assert card.read().limit_bytes is None


def test_an_experiment_can_be_slowed_down_to_watch_it():
    waited: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0.0)
            return False

    request = experiment("gt1030", whole_card=True, watch_s=1.4)
    list(run_experiment(request, ModelledMemory(card_at("model:1996")), Stop()))
    assert waited == [pytest.approx(0.2)] * 7


class Spilling(ModelledMemory):
    """A card of 2 GiB under Windows: beyond it the driver goes on in the PC's memory."""

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        read = super().read(mark, step)
        free_bytes = max(0, read.free_bytes - 6000 * MIB)
        return msgspec.structs.replace(read, total_bytes=2000 * MIB, free_bytes=free_bytes)


def test_what_spills_is_ended_and_named():
    request = experiment("gt1030", "model:8000", whole_card=True, reads_every_step=True)
    events = list(run_experiment(request, Spilling(card_at("model:8000")), threading.Event()))
    start, *_, freed = only(MemoryRead, events)
    finished = events[-1]
    assert finished.outcome == "spilled"
    assert start.free_bytes < finished.allocated_bytes <= start.free_bytes + 2 * 256 * MIB
    assert finished.error_text == ""
    assert freed.allocated_bytes == 0


class FreedMeanwhile(ModelledMemory):
    """A card on which another program frees 100 MiB between the error and the reading."""

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        read = super().read(mark, step)
        freed_bytes = 100 * MIB if mark == "oom" else 0
        return msgspec.structs.replace(read, free_bytes=read.free_bytes + freed_bytes)


class Numberless(ModelledMemory):
    """A card without NVML, where PyTorch raises an assertion instead of its report."""

    def empty(self, size_bytes: int) -> ModelledTensor:
        try:
            return super().empty(size_bytes)
        except ModelledOutOfMemory:
            raise ModelledOutOfMemory("NVML_SUCCESS == r INTERNAL ASSERT FAILED") from None


def test_the_end_has_the_errors_own_numbers():
    plan, request = AllocationPlan(size=8190), experiment("custom", whole_card=True)
    request = msgspec.structs.replace(request, plan=plan)
    *_, finished = run_experiment(request, FreedMeanwhile(card_at("model:1996")), threading.Event())
    # Those of the text, and to the byte where a counter says the same.
    assert (finished.tried_bytes, finished.free_bytes) == (256 * MIB, 144 * MIB)
    assert finished.total_bytes == 1996 * MIB
    assert "144 MiB of 1.95 GiB was free" in finished.explanation.replace("\u202f", " ")
    *_, finished = run_experiment(request, Numberless(card_at("model:1996")), threading.Event())
    assert (finished.tried_bytes, finished.free_bytes) == (None, 144 * MIB)
    _, finished = run(experiment("custom", plan=AllocationPlan(size=1024, count=4)))
    assert finished.tried_bytes is None, "there was no error"


class Untold(ModelledMemory):
    """A card whose driver does not tell the free memory, as older ones of Intel's."""

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        return msgspec.structs.replace(super().read(mark, step), free_bytes=None)


@pytest.mark.parametrize(
    ("plan", "whole_card", "words"),
    [
        (AllocationPlan(size=8192, count=4), False, "4 tensors, together 1 GiB, were on the card"),
        (AllocationPlan(size=8192, count=4), True, "4 tensors, together 1 GiB, were on the card"),
        (AllocationPlan(size=8192), False, "when 1.25 GiB was allocated. The budget allows 1.46"),
        (AllocationPlan(size=8192), True, "when 1.75 GiB was allocated."),
    ],
)
def test_what_the_driver_does_not_tell_is_not_named(plan: Any, whole_card: bool, words: str):
    request = experiment("custom", plan=plan, whole_card=whole_card, reads_every_step=True)
    *_, finished = run_experiment(request, Untold(card_at("model:1996")), threading.Event())
    told = finished.explanation.replace("\u202f", " ")
    assert words in told
    assert "0 bytes" not in told
    assert finished.others_grew_bytes is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"preset": "gt1031"}, "is not a preset"),
        ({"preset": "custom"}, "needs a plan"),
        ({"plan": AllocationPlan(size=0)}, "size, 0, is out of range"),
        ({"plan": AllocationPlan(size=1, count=0)}, "count, 0, is out of range"),
        ({"plan": AllocationPlan(size=1, dtype="int3")}, "“int3” is not a supported dtype"),
        ({"preset": "leak", "budget_bytes": 0}, "budget in bytes, 0, is out of range"),
        ({"preset": "fragmentation", "budget_bytes": 100 << 20}, "needs 224"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], words: str):
    with pytest.raises(StudioError, match=words):
        run(experiment(**{"preset": "custom", **changes}))


MIB = 1 << 20
EXPANDABLE = "expandable_segments:True"


def experiment(preset: str, device: str = "model:1996", **changes: Any) -> RunMemoryExperiment:
    return RunMemoryExperiment(preset=preset, device=device, **changes)


def run(request: RunMemoryExperiment, conf: str = "") -> tuple[list[Any], OomFinished]:
    card = ModelledMemory(card_at(request.device), conf)
    events = list(run_experiment(request, card, threading.Event()))
    assert isinstance(events[-1], OomFinished)
    return events, events[-1]


@pytest.mark.parametrize("device", ["model:1024", "model:1996", "model:81152"])
@pytest.mark.parametrize("preset", [p for p in PRESETS if p.name != "custom"], ids=lambda p: p.name)
def test_each_ends_in_its_named_outcome_on_a_card_of_any_size(preset: Any, device: str):
    if preset.name == "many_small" and device == "model:81152":
        device = "model:5949"  # a third of a million tensors would take half a minute
    for whole_card in (False, True):
        events, finished = run(experiment(preset.name, device, whole_card=whole_card))
        assert finished.outcome == preset.ends_in[whole_card]
        assert finished.modelled
        assert finished.explanation.endswith(".")
        assert (finished.budget_bytes is None) == whole_card
        start, *_, freed = only(MemoryRead, events)
        assert (start.mark, freed.mark) == ("start", "freed")
        assert freed.limit_bytes is None
        if not whole_card:
            assert finished.budget_bytes == start.free_bytes * 3 // 4
            assert max(r.reserved_bytes for r in only(MemoryRead, events)) <= finished.budget_bytes


def test_the_gt_1030_experiment():
    """Seven matrices fit beside a context of 60 MiB, as in the post they did beside 38."""
    _, finished = run(experiment("gt1030", whole_card=True))
    assert (finished.tensors, finished.steps) == (7, 7)
    assert finished.allocated_bytes == finished.reserved_bytes == 7 * 256 * MIB
    assert finished.largest_block_bytes == finished.free_total_bytes == 144 * MIB
    assert "Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB of which 144.00 " \
        "MiB is free." in finished.error_text  # fmt: skip


def test_a_fragmented_card_has_more_free_than_was_asked_for():
    _, finished = run(experiment("fragmentation"))
    assert finished.largest_block_bytes < finished.tensor_bytes < finished.free_total_bytes
    allowed = finished.budget_bytes - finished.reserved_bytes
    holes = finished.reserved_bytes - finished.allocated_bytes
    assert finished.tensor_bytes < allowed + holes, "the budget is not what failed"
    free = format_bytes(finished.budget_bytes - finished.allocated_bytes)
    assert f"{free} was free within the budget, but the largest" in finished.explanation
    _, finished = run(experiment("fragmentation", whole_card=True))
    free = format_bytes(finished.free_total_bytes)
    assert f"{free} was free in total, but the largest" in finished.explanation
    assert run(experiment("fragmentation"), EXPANDABLE)[1].outcome == "fits"


def test_without_a_budget_the_options_own_limit_counts():
    conf = "per_process_memory_fraction:0.3"
    events, finished = run(experiment("gt1030", whole_card=True), conf)
    assert (finished.outcome, finished.tensors) == ("over_budget", 2)
    limits = {read.limit_bytes for read in only(MemoryRead, events)}
    assert limits == {int(0.3 * 1996 * MIB + 0.5)}
    _, finished = run(
        experiment("fragmentation", whole_card=True), "per_process_memory_fraction:0.9"
    )
    assert finished.outcome == "fragmented"
    assert "free within the budget" in finished.explanation


def test_a_leak_leaves_more_at_every_step():
    events, finished = run(experiment("leak", reads_every_step=True))
    ends = [read.allocated_bytes for read in only(MemoryRead, events) if read.mark == "freed"][:-1]
    assert len(ends) > 10
    assert ends == sorted(set(ends))
    assert finished.outcome == "leak"
