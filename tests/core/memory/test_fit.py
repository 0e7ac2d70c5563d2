import json
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.fit import (
    ModelFit,
    bandwidth_of,
    bandwidth_request,
    most_tokens_per_s,
    speed_words,
    step_bytes,
)
from gpu_studio.core.memory.modelled_cards import (
    ModelledCardChoice,
    card_at,
    modelled_card_table,
    modelled_cards,
)
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, network_called
from gpu_studio.core.memory.weights_file import config_of_gguf, read_config
from gpu_studio.core.notice import Tone
from tests.fakes.run_answers import finished

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


BANDWIDTH = 448e9
MIXTRAL = {
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    "max_position_embeddings": 32768, "sliding_window": None, "tie_word_embeddings": False,
}  # fmt: skip


def asked(network: Network, kind: str = "16-bit", tokens: int = 0, batch: int = 1) -> ModelFit:
    return ModelFit(card_at("model:6000"), network, kind, "Adam", tokens, batch)


def llama_2_7b(tokens: int = 0, batch: int = 1) -> ModelFit:
    return asked(known("Llama 2 7B"), "4-bit", tokens, batch)


def with_config(parameters: int, **fields: Any) -> Network:
    config = read_config(json.dumps({**MIXTRAL, **fields}).encode())
    return Network(parameters=parameters, config=config)


def speed(fit: ModelFit) -> tuple[str, str]:
    return speed_words(fit, BANDWIDTH, device="this card")


def test_a_plain_model_is_read_once_per_token():
    """llama.cpp prints 2048 MiB of cache for Llama 2 7B with 4,096 tokens."""
    fit = llama_2_7b(4096)
    assert fit.cache_bytes == 2 * GIB
    table_bytes = 4096 * 32000 * 18 / 32  # a token reads its row
    assert step_bytes(fit) == pytest.approx(fit.weights_bytes - table_bytes + 2 * GIB, rel=1e-6)
    sentence, detail = speed(fit)
    ahead = "without guessing ahead (MTP, a draft model)"
    assert sentence == f"At most 76.4 tokens a second on this card, {ahead}."
    words = detail.replace("\u202f", " ")
    assert "448 GB/s over 5.86 GB read per token with 4,096 tokens of context." in words
    assert most_tokens_per_s(fit, BANDWIDTH) == pytest.approx(76.4, rel=1e-3)


def test_several_texts_share_the_weights():
    one, four = llama_2_7b(1024), llama_2_7b(1024, 4)
    weights = (step_bytes(one) or 0) - one.cache_bytes
    assert step_bytes(four) == weights + 4 * one.cache_bytes
    assert "for 4 texts at once" in speed(four)[0]


def test_a_mixture_reads_the_experts_that_its_configuration_names():
    """Jiang et al. 2024, Mixtral of Experts: 47 B parameters, of which a token uses 13 B."""
    fit = asked(with_config(46_702_792_704), tokens=1)
    read = step_bytes(fit)
    assert read is not None
    assert f"{(read - fit.cache_bytes) / 2 / 1e9:.1f}" == "12.9"
    assert fit.cache_bytes == 128 << 10  # 32 layers × 8 heads × 128 × keys and values × 2 bytes


@pytest.mark.parametrize(
    "network",
    [
        Network(name="a.gguf", parameters=47 * 10**9, has_experts=True),
        with_config(47 * 10**9, num_experts_per_tok=None),
        with_config(47 * 10**9, num_experts_per_tok=9),  # of 8
        with_config(47 * 10**9, intermediate_size=None),
        with_config(10**9),  # it has fewer weights than its experts
    ],
)
def test_a_mixture_of_which_nothing_says_what_it_reads_has_no_speed(network: Network):
    assert most_tokens_per_s(asked(network), BANDWIDTH) is None
    assert "is not known" in speed(asked(network))[0]


@pytest.mark.parametrize(
    ("fields", "per_token"),
    [
        ({}, 131_072),
        ({"num_key_value_heads": None}, 4 * 131_072),
        ({"head_dim": 64}, 65_536),
        ({"sliding_window": 4096, "use_sliding_window": False}, 131_072),
        ({"layer_types": ["full_attention"] * 32}, 131_072),
        ({"num_hidden_layers": 1, "text_config": {"num_hidden_layers": 32}}, 131_072),
        # Some layers keep something else:
        ({"kv_lora_rank": 512}, 0),
        ({"layer_types": ["linear_attention", "full_attention"] * 16}, 131_072 // 2),
        ({"full_attention_interval": 4}, 131_072 // 4),
        ({"layer_types": ["mamba", "full_attention"] * 16}, 0),
        ({"sliding_window": 4096}, 0),
        ({"is_encoder_decoder": True}, 0),
        ({"mamba_d_state": 16}, 0),
        ({"num_attention_heads": 0, "num_key_value_heads": 0}, 0),
    ],
)
def test_the_cache_follows_the_configuration(fields: Any, per_token: int):
    network = with_config(7 * 10**9, num_local_experts=None, **fields)
    assert asked(network, tokens=8192).cache_bytes == 8192 * per_token
    assert asked(network, "float32", 1).cache_bytes == 2 * per_token
    details = asked(network).answer().details
    assert ("cache is not included" in details) == (per_token == 0)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000, b"\xff\xfe", b'{"num_hidden_layers": -1}', b'{"n_layer": "32"}',
    ],
)  # fmt: skip
def test_another_or_a_forged_configuration_says_nothing(text: bytes):
    assert read_config(text) is None


def gguf_cache(**fields: Any) -> int:
    keys = {key.replace("__", "."): value for key, value in fields.items()}
    metadata = {"block_count": 32, "embedding_length": 4096, "attention.head_count": 32, **keys}
    prefixed = {f"llama.{key}": value for key, value in metadata.items()}
    config = config_of_gguf({"general.architecture": "llama", **prefixed})
    return asked(Network(parameters=10**9, config=config), tokens=8192).cache_bytes


def test_a_plain_cache_follows_the_metadata():
    assert gguf_cache() == 4 << 30
    assert gguf_cache(attention__head_count_kv=8) == 1 << 30
    assert gguf_cache(attention__key_length=64) == 2 << 30
    for key in ("attention__kv_lora_rank", "ssm__state_size", "attention__sliding_window"):
        assert gguf_cache(**{key: 9}) == 0
    assert gguf_cache(attention__head_count="many") == 0


def test_a_copy_within_the_memory_measures_the_bandwidth():
    for device, rate, reads in (("cuda:0", 4e11, 4e11), ("cpu", 4e10, 6e10)):
        request = bandwidth_request(device, "b")
        run = finished(request, (0.001,), throughput=rate, throughput_unit="B/s")
        assert bandwidth_of(run) == pytest.approx(reads)  # a CPU reads what it writes, as well


def test_the_cache_counts_for_the_fit_and_beyond_the_card_it_is_slower():
    fits = {tokens: llama_2_7b(tokens) for tokens in (512, 4096, 16384)}
    assert [fit.inference.fits for fit in fits.values()] == [True, None, False]
    slower = ["RAM, which is slower" in speed(fit)[0] for fit in fits.values()]
    assert slower == [False, False, True]
    assert "float32 or 16 bits" in fits[512].answer().verdicts[1].told


def test_a_file_in_float32_keeps_its_cache_in_float32():
    config = read_config(json.dumps(MIXTRAL | {"num_local_experts": 0}).encode())
    sizes = [
        asked(Network(parameters=10, size_bytes=40, own_type=own, config=config), AS_IN_FILE, 1)
        for own in ("16-bit", "float32", "")
    ]
    assert [fit.cache_bytes for fit in sizes] == [131_072, 262_144, 131_072]
