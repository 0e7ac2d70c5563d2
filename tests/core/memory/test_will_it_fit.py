from __future__ import annotations

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator import AllocatorModel, OutOfMemory
from gpu_studio.core.memory.modelled_cards import card_at, modelled_card_table, modelled_cards
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.memory.will_it_fit import fit_on, largest_batch, largest_square_side, model_fit
from gpu_studio.core.units import format_count

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
    with pytest.raises(StudioError, match="modelled card") as raised:
        card_at(address)
    assert len(str(raised.value)) < 120


def fits(size_bytes: int) -> bool:
    model = AllocatorModel(GT_1030.total_bytes, GT_1030.context_bytes)
    try:
        model.allocate(size_bytes)
    except OutOfMemory:
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
            with pytest.raises(OutOfMemory):
                list(step)


def test_without_gradients_a_much_larger_batch_fits():
    fit = fit_on(GT_1030)
    assert fit.largest_inference_batch > 8 * fit.largest_training_batch > 0
    side = fit.largest_square_side
    assert f"{side} × {side}" in fit.sentence
    assert f"a batch of {format_count(fit.largest_training_batch)} fits" in fit.sentence


def test_expandable_segments_round_to_larger_pages():
    side = largest_square_side(GT_1030, "expandable_segments:True")
    assert 4 * side**2 <= 1920 * MIB < 4 * (side + 1) ** 2


def test_a_billion_parameters():
    small = model_fit(GT_1030, 10**9, "float16")
    assert (small.inference_fits, small.training_fits) == (True, False)
    assert 2 * 10**9 <= small.inference_bytes < 2 * 10**9 + 20 * MIB
    assert 8 * 10**9 <= small.training_bytes < 8 * 10**9 + 80 * MIB
    assert not model_fit(GT_1030, 10**9, "float32").inference_fits
    large = model_fit(modelled_cards()[-1], 10**9, "float32")
    assert (large.inference_fits, large.training_fits) == (True, True)
    assert "1 billion parameters in float32" in large.sentence
    assert "training" in large.sentence.lower()


@pytest.mark.parametrize("parameters", [1, 110, 999_999, 10**12, 10**14])
def test_any_number_of_parameters_has_an_answer(parameters: int):
    fit = model_fit(GT_1030, parameters, "float64")
    assert fit.inference_bytes >= 8 * parameters
    assert fit.training_bytes >= 4 * 8 * parameters
    assert fit.inference_fits == (parameters < 10**9)
