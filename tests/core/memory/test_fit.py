import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.fit import ModelFit
from gpu_studio.core.memory.modelled_cards import (
    ModelledCardChoice,
    card_at,
    modelled_card_table,
    modelled_cards,
)
from gpu_studio.core.memory.networks import Network, network_called
from gpu_studio.core.notice import Tone

MIB, GIB = 1 << 20, 1 << 30
GT_1030 = card_at("model:1996")
BILLION = Network(parameters=10**9)


def card_with(free_bytes: int) -> ModelledCardChoice:
    total_bytes = free_bytes + 400 * MIB
    return ModelledCardChoice(name="it", total_bytes=total_bytes, context_bytes=400 * MIB)


def known(name: str) -> Network:
    network = network_called(name)
    assert network is not None
    return network


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
    ["model:", "model:255", "model:1048577", "model:٣٠٠", "cuda:0", "model:" + "9" * 5000],
)  # fmt: skip
def test_a_card_that_cannot_be_is_refused_in_one_sentence(address: str):
    with pytest.raises(StudioError, match="simulated card") as raised:
        card_at(address)
    assert len(str(raised.value)) < 120


@pytest.mark.parametrize(
    ("plan", "kind", "bytes_each"),
    [
        ("Adam", "float32", 4 + 4 + 8 + 4),
        ("Adam (fused=True)", "float32", 4 + 4 + 8),
        ("SGD", "float32", 8),
        ("SGD with momentum", "16-bit", 6),
        ("Adam and AMP", "float32", 4 + 4 + 2 + 8 + 4),
        ("SGD and AMP", "16-bit", 4),  # torch.autocast copies float32 weights only
    ],
)
def test_every_plan_has_its_own_need(plan: str, kind: str, bytes_each: int):
    need = ModelFit(GT_1030, BILLION, kind, plan).training
    assert need is not None
    assert need.least_bytes == bytes_each * 10**9
    verdict = ModelFit(GT_1030, BILLION, kind, plan).answer().verdicts[1]
    assert plan in verdict.notice.sentence


def test_nearly_all_of_the_room_is_neither_yes_nor_no():
    for free, fits in ((5, True), (4.1, None), (3.9, False)):
        found = ModelFit(card_with(round(free * 10**9)), BILLION, "float32")
        assert found.inference.fits is fits
        tank = found.inference.tank(card_with(round(free * 10**9)))
        assert (tank.card_bytes is None) == (fits is not False)
        assert sum(part.size_bytes for part in tank.parts) == tank.total_bytes


def test_without_its_activations_training_is_not_said_to_fit():
    found = ModelFit(card_with(100 * GIB), BILLION, "float32")
    assert not found.has_activations
    training = found.answer().verdicts[1].notice
    assert training.sentence.endswith("the activations are not known")
    assert training.tone is Tone.AMBER


def test_the_activations_of_gpt_2_follow_the_published_formula():
    """Korthikanti et al. 2022: sbh (34 + 5 as/h) bytes a layer in 16 bits, 4sbv for the loss."""
    s, b, h, a, v = 1024, 8, 768, 12, 50257
    found = ModelFit(card_with(40 * GIB), known("gpt-2"), "16-bit", batch=b)
    need = found.training
    assert need is not None
    activations = 12 * s * b * h * (34 + 5 * a * s / h) + 4 * s * b * v
    assert need.most_bytes == round(10 * 124_439_808 + activations)
    assert need.least_bytes == round(need.most_bytes - 12 * s * b * 5 * a * s)
    assert found.has_activations
    assert "8 texts of 1,024 tokens" in found.answer().details
    parts = {part.key: part.size_bytes for part in need.tank(card_with(40 * GIB)).parts}
    assert parts["activations"] == round(activations)


def test_a_batch_that_does_not_fit_is_not_said_to_fit():
    fits = {}
    for batch in (1, 8, 64):
        need = ModelFit(card_with(12 * GIB), known("GPT-2"), "float32", batch=batch).training
        assert need is not None
        fits[batch] = need.fits
    assert fits == {1: True, 8: None, 64: False}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1), ("7B", 7 * 10**9), ("350 M", 350 * 10**6), ("1e9", 10**9), ("1 billion", 10**9),
        ("1,000,000", 10**6), ("0.5b", 5 * 10**8), ("11 million", 11 * 10**6), ("2 k", 2000),
        ("", None), ("0", None), ("many", None), ("-5", None), ("7 B parameters", None),
        ("1e999", None), ("1.2.3", None), ("9" * 400, None), ("9" * 308 + "T", None),
    ],
)  # fmt: skip
def test_a_number_of_parameters_is_read_as_people_write_it(text, count):
    network = network_called(text)
    assert (None if network is None else network.parameters) == count
