from __future__ import annotations

import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator.errors import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.fit import (
    fit_on,
    largest_batch,
    largest_square_side,
    model_fit,
    parse_count,
)
from gpu_studio.core.memory.fit_tanks import inference_tank, training_tank
from gpu_studio.core.memory.modelled_cards import (
    ModelledCardChoice,
    card_at,
    modelled_card_table,
    modelled_cards,
)
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.memory.networks import Network, known_network
from gpu_studio.core.memory.token_speed import token_reading
from gpu_studio.core.memory.training import TrainingPlan, plans_for
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.core.units import format_count, format_size
from tests.core.memory.published_networks import FURTHER, PUBLISHED, many_tiny_tensors, thirds

MIB, GIB = 1 << 20, 1 << 30
GT_1030 = card_at("model:1996")


def test_the_cards_go_from_2_to_80_gib_and_name_their_source():
    cards = modelled_cards()
    sizes = [card.total_bytes for card in cards]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1996 * MIB
    assert 79 * GIB < sizes[-1] < 80 * GIB
    assert all(card_at(card.address) == card for card in cards)
    for row in modelled_card_table().cards:
        printed_gib = float(row.source.rpartition("(")[2].partition(" GiB")[0])
        assert row.total_mib == pytest.approx(printed_gib * 1024, abs=1024 * 0.005)


@pytest.mark.parametrize(
    "address",
    ["model:", "model:255", "model:1048577", "model:-5", "model:2e3", "model:٣٠٠", "cuda:0",
     "model:1996 ", "model:" + "9" * 5000],
)  # fmt: skip
def test_a_card_that_cannot_be_is_refused_in_one_sentence(address: str):
    with pytest.raises(StudioError, match="simulated card") as raised:
        card_at(address)
    assert len(str(raised.value)) < 120


def fits(size_bytes: int) -> bool:
    model = AllocatorModel(GT_1030.total_bytes, GT_1030.context_bytes)
    try:
        model.allocate(size_bytes)
    except ModelledOutOfMemory:
        return False
    return True


def test_one_more_row_and_column_would_not_fit():
    side = largest_square_side(GT_1030)
    assert side == 22528  # 1936 MiB, all that the context leaves
    assert fits(4 * side**2)
    assert not fits(4 * (side + 1) ** 2)


@pytest.mark.parametrize("trains", [True, False])
def test_one_more_sample_would_not_fit(trains: bool):
    batch = largest_batch(GT_1030, trains=trains)
    for size, works in ((batch, True), (batch + 1, False)):
        network = ModelledMemory(GT_1030).sample_network()
        step = network.train(size) if trains else network.infer(size)
        if works:
            assert list(step)
        else:
            with pytest.raises(ModelledOutOfMemory):
                list(step)


def test_without_gradients_a_much_larger_batch_fits():
    fit = fit_on(GT_1030)
    assert fit.largest_inference_batch > 8 * fit.largest_training_batch > 0
    side = fit.largest_square_side
    assert format_size(side) in fit.sentence
    assert f"{format_count(fit.largest_training_batch)} in training" in fit.sentence


def test_expandable_segments_round_to_larger_pages():
    side = largest_square_side(GT_1030, "expandable_segments:True")
    assert 4 * side**2 <= 1920 * MIB < 4 * (side + 1) ** 2


def test_a_billion_parameters():
    small = model_fit(GT_1030, 10**9, "float16")
    assert (small.inference.fits, small.training.fits) == (None, False)
    assert 2 * 10**9 <= small.inference.least_bytes < 2 * 10**9 + 20 * MIB
    assert 10 * 10**9 <= small.training.least_bytes < 10 * 10**9 + 80 * MIB
    assert model_fit(GT_1030, 10**9, "float32").inference.fits is False
    large = model_fit(modelled_cards()[-1], 10**9, "float32")
    assert (large.inference.fits, large.training.fits) == (True, True)
    assert "1 billion parameters in float32" in large.sentence
    assert "training" in large.sentence.lower()
    assert "inference may fit, depending on the shapes of its tensors. " in small.sentence


def test_adam_needs_a_fifth_copy_while_it_steps():
    card = ModelledCardChoice(name="34 GiB", total_bytes=34 << 30, context_bytes=400 * MIB)
    fit = model_fit(card, 14 * 10**8, "float32")
    assert fit.training.least_bytes == pytest.approx(5 * 4 * 14 * 10**8, rel=0.02)
    assert fit.training.fits is None
    assert fit.fused is not None
    assert fit.fused.least_bytes == pytest.approx(4 * 4 * 14 * 10**8, rel=0.02)
    assert " With fused=True it reserves " in fit.sentence
    fused = model_fit(card, 14 * 10**8, "float32", plan=TrainingPlan(implementation="fused"))
    assert fused.training.fits
    assert "with Adam (fused=True) reserves" in fused.sentence


@pytest.mark.parametrize(
    ("plan", "dtype", "bytes_each"),
    [
        (TrainingPlan(optimizer="sgd"), "float32", 8),
        (TrainingPlan(optimizer="sgd_momentum"), "float16", 6),
        (TrainingPlan(optimizer="adamw", implementation="for_loop"), "float32", 16),
        (TrainingPlan(has_masters=True), "bfloat16", 2 + 2 + 4 + 4 + 8 + 4),
        (TrainingPlan(has_masters=True, implementation="fused"), "float16", 20),
    ],
)
def test_every_optimizer_has_its_own_need(plan, dtype, bytes_each):
    fit = model_fit(GT_1030, 10**10, dtype, plan=plan)
    assert fit.training.least_bytes == pytest.approx(bytes_each * 10**10, rel=0.02)
    assert sum(plan.bytes_by_purpose(dtype).values()) == bytes_each


def reserved_by(counts: list[int], item_bytes: int) -> tuple[int, int]:
    """Return the reserved bytes of weights and of training with Adam, in PyTorch's order.

    The backward pass makes the gradients of the last layers first.
    """
    allocator = AllocatorModel(1 << 50)

    def blocks_of(sizes):
        return [allocator.allocate(count * item_bytes) for count in sizes]

    listed = [blocks_of(counts)]
    weights_bytes = allocator.stats()["reserved_bytes.all.peak"]
    for step in range(3):
        gradients = blocks_of(reversed(counts))
        if step == 0:
            listed.append(blocks_of(count for count in counts for _ in ("exp_avg", "exp_avg_sq")))
        for block in blocks_of(counts) + gradients:  # the square roots, then the gradients
            allocator.free(block)
    return weights_bytes, allocator.stats()["reserved_bytes.all.peak"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("network", [*PUBLISHED, *FURTHER], ids=lambda one: one.__name__)
def test_the_range_covers_a_real_network(network, dtype: str):
    with torch.device("meta"):
        counts = network()
    weights_bytes, training_bytes = reserved_by(counts, ITEM_BYTES[dtype])
    fit = model_fit(modelled_cards()[-1], sum(counts), dtype)
    assert fit.inference.least_bytes <= weights_bytes <= fit.inference.most_bytes
    assert fit.training.least_bytes <= training_bytes <= fit.training.most_bytes
    # No network can need less, and at worst a third of every segment is lost.
    copies_bytes = 5 * ITEM_BYTES[dtype] * sum(counts)
    assert fit.training.least_bytes <= copies_bytes + 4 * MIB
    if network is not many_tiny_tensors:
        assert fit.training.most_bytes <= 1.5 * copies_bytes + 42 * MIB
    known = Network(name="it", tensors=tuple(counts))
    exactly = model_fit(modelled_cards()[-1], known, dtype)
    assert exactly.inference.least_bytes == exactly.inference.most_bytes == weights_bytes
    assert exactly.training.least_bytes == exactly.training.most_bytes
    assert exactly.training.most_bytes == pytest.approx(training_bytes, rel=0.005)


@pytest.mark.parametrize("network", PUBLISHED, ids=lambda one: one.__name__)
def test_the_range_covers_every_way_to_train(network):
    with torch.device("meta"):
        known = Network(name="it", tensors=tuple(network()))
    card = modelled_cards()[-1]
    for plan in plans_for("bfloat16"):
        by_count = model_fit(card, known.parameters, "bfloat16", plan=plan).training
        exactly = model_fit(card, known, "bfloat16", plan=plan).training
        assert by_count.least_bytes <= exactly.least_bytes <= by_count.most_bytes


@pytest.mark.parametrize("network", [thirds, many_tiny_tensors])
def test_the_range_is_no_wider_than_it_must_be(network):
    counts = network()
    most_bytes = model_fit(GT_1030, sum(counts), "float32").training.most_bytes
    assert most_bytes <= 1.03 * reserved_by(counts, 4)[1]


def test_a_known_network_has_one_answer():
    network = known_network("gpt-2")
    card = ModelledCardChoice(name="4 GiB", total_bytes=4 << 30, context_bytes=400 * MIB)
    fit = model_fit(card, network, "float32")
    assert fit.training.fits
    assert fit.sentence.startswith(
        "GPT-2, with 124.44 million parameters in float32, reserves 610\u202fMiB for its weights "
        "and for 72\u202fMiB of KV cache: inference fits."
    )
    assert " to " not in fit.sentence
    by_count = model_fit(card, network.parameters, "float32")
    assert (by_count.training.fits, by_count.network) == (True, "")
    assert " to " in by_count.sentence


def test_masters_are_of_half_types():
    with pytest.raises(StudioError, match="not for float32"):
        model_fit(GT_1030, 1000, "float32", plan=TrainingPlan(has_masters=True))


@pytest.mark.parametrize("parameters", [1, 110, 999_999, 10**12, 10**14])
def test_any_number_of_parameters_has_an_answer(parameters: int):
    fit = model_fit(GT_1030, parameters, "float64")
    assert fit.inference.least_bytes >= 8 * parameters
    assert fit.training.least_bytes >= 5 * 8 * parameters
    assert fit.inference.fits == (parameters < 10**9)


CARD = ModelledCardChoice(name="a card", total_bytes=1996 * MIB, context_bytes=60 * MIB)


def sizes(tank):
    return {part.key: part.size_bytes // MIB for part in tank.parts}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1), ("7B", 7 * 10**9), ("350 M", 350 * 10**6), ("1e9", 10**9), ("1 billion", 10**9),
        ("1,000,000", 10**6), ("0.5b", 5 * 10**8), ("11 million", 11 * 10**6), ("2 k", 2000),
        ("", None), ("many", None), ("-5", None), ("7 B parameters", None), ("1e999", None),
        ("1.2.3", None), ("9" * 400, None), ("9" * 308 + "T", None),
    ],
)  # fmt: skip
def test_a_number_of_parameters_is_read_as_people_write_it(text, count):
    assert parse_count(text) == count


def test_what_fits_leaves_the_rest_free():
    tank = training_tank(CARD, 500 * MIB, "float32", TrainingPlan())
    assert sizes(tank) == {
        "context": 60, "tensors": 100, "gradients": 100, "moments": 200, "step": 100, "free": 1436,
    }  # fmt: skip
    assert sum(part.size_bytes for part in tank.parts) == tank.total_bytes == CARD.total_bytes
    assert tank.card_bytes is None


def test_what_does_not_fit_goes_beyond_the_end_of_the_card():
    tank = inference_tank(CARD, 3000 * MIB, token_reading(750 * 10**6, "float32"))
    assert sizes(tank) == {"context": 60, "tensors": 3000}
    assert tank.total_bytes == 3060 * MIB
    assert tank.card_bytes == 1996 * MIB


def test_to_the_byte_at_the_end():
    exactly = CARD.total_bytes - CARD.context_bytes
    assert sizes(training_tank(CARD, exactly, "float32", TrainingPlan()))["free"] == 0
    assert (
        training_tank(CARD, exactly + 1, "float32", TrainingPlan()).card_bytes == CARD.total_bytes
    )
