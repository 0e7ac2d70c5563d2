from typing import Any

import pytest

from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.memory_messages import MemoryRead, StageBegan
from gpu_studio.core.units import format_bytes
from tests.core.memory.modelled_experiment import EXPANDABLE, MIB, experiment, run
from tests.engine.answers import only


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
    assert finished.free_bytes == read_oom_text(finished.error_text).free_bytes


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


def test_the_exception_holds_the_tensors_until_it_is_let_go():
    events, finished = run(experiment("after_the_error", reads_every_step=True))
    held, let_go, emptied = finished.stages
    assert held.allocated_bytes == held.reserved_bytes == finished.allocated_bytes > 0
    assert (let_go.allocated_bytes, let_go.reserved_bytes) == (0, held.reserved_bytes)
    assert (emptied.allocated_bytes, emptied.reserved_bytes) == (0, 0)
    stages = [event.stage for event in only(StageBegan, events)]
    assert stages == ["filling", "held", "let go"]


def test_without_gradients_a_larger_batch_goes_through():
    events, finished = run(experiment("activations"))
    training, inference = finished.stages
    assert inference.batch >= 8 * training.batch
    reads = [read for read in only(MemoryRead, events) if read.mark == "oom"]
    assert len(reads) == 2, "both parts end in an error"
    assert 0 < training.peak_allocated_bytes <= finished.budget_bytes


def test_a_leak_leaves_more_at_every_step():
    events, finished = run(experiment("leak", reads_every_step=True))
    ends = [read.allocated_bytes for read in only(MemoryRead, events) if read.mark == "freed"][:-1]
    assert len(ends) > 10
    assert ends == sorted(set(ends))
    assert finished.outcome == "leak"
