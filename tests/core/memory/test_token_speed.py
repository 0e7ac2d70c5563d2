import json
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.fit import ModelFit
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, network_called
from gpu_studio.core.memory.token_speed import (
    Bandwidth,
    TokenReading,
    bandwidth_of,
    bandwidth_request,
    most_tokens_per_s,
    speed_words,
    token_reading,
)
from gpu_studio.core.memory.weights.weights_file import config_of_gguf, read_config
from tests.fakes.run_answers import finished

GIB = 1 << 30
CARD = Bandwidth(copy_bytes_per_s=448e9, is_cpu=False)
MIXTRAL = {
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    "max_position_embeddings": 32768, "sliding_window": None, "tie_word_embeddings": False,
}  # fmt: skip


def llama_2_7b() -> Network:
    network = network_called("Llama 2 7B")
    assert network is not None
    return network


def with_config(parameters: int, **fields: Any) -> Network:
    config = read_config(json.dumps({**MIXTRAL, **fields}).encode(), "config.json")
    return Network(parameters=parameters, config=config)


def speed(reading: TokenReading, *, is_too_large: bool = False) -> tuple[str, str]:
    return speed_words(reading, CARD, device="this card", is_too_large=is_too_large)


def plain(words: str) -> str:
    return words.replace("\u202f", " ")


def test_a_plain_model_is_read_once_per_token():
    """llama.cpp prints 2048 MiB of cache for Llama 2 7B with 4,096 tokens."""
    reading = token_reading(llama_2_7b(), "4-bit", 4096)
    assert reading.cache_bytes == 2 * GIB
    # Of the input table a token reads its row.
    assert reading.idle_bytes == pytest.approx(4096 * 32000 * 18 / 32, rel=1e-6)
    assert reading.step_bytes == reading.weights_bytes - reading.idle_bytes + 2 * GIB
    assert most_tokens_per_s(reading, CARD) == pytest.approx(448e9 / reading.step_bytes)
    sentence, detail = speed(reading)
    assert sentence == "At most 76.4 tokens a second on this card."
    assert "448 GB/s over 5.86 GB read per token with 4,096 tokens of context." in plain(detail)
    assert "32 layers × 8,192 numbers × 2 bytes" in plain(reading.words)


def test_several_texts_share_the_weights():
    one, four = (token_reading(llama_2_7b(), "4-bit", 1024, batch) for batch in (1, 4))
    assert four.cache_bytes == 4 * one.cache_bytes
    assert most_tokens_per_s(four, CARD) == pytest.approx(4 * 448e9 / four.step_bytes)
    assert "for 4 texts at once" in speed(four)[0]


def test_a_mixture_reads_the_experts_that_its_configuration_names():
    """Jiang et al. 2024, Mixtral of Experts: 47 B parameters, of which a token uses 13 B."""
    reading = token_reading(with_config(46_702_792_704), "float16", 1)
    used = (reading.weights_bytes - reading.idle_bytes) / 2 + 32000 * 4096
    assert f"{used / 1e9:.1f}" == "12.9"
    assert reading.cache_bytes == 128 << 10  # 32 layers × 8 heads × 128 × keys and values × 2 bytes


@pytest.mark.parametrize(
    "network",
    [
        Network(name="a.gguf", parameters=47 * 10**9, has_experts=True),
        with_config(47 * 10**9, num_experts_per_tok=None),
        with_config(47 * 10**9, intermediate_size=None),
        with_config(10**9),  # it has fewer weights than its experts
    ],
)
def test_a_mixture_of_which_nothing_says_what_it_reads_has_no_speed(network: Network):
    reading = token_reading(network, "float16")
    assert most_tokens_per_s(reading, CARD) is None
    assert "is not known" in speed(reading)[0]


@pytest.mark.parametrize(
    ("fields", "per_token"),
    [
        ({}, 131_072),
        ({"num_key_value_heads": None}, 4 * 131_072),
        ({"head_dim": 64}, 65_536),
        ({"sliding_window": 4096, "use_sliding_window": False}, 131_072),
        ({"layer_types": ["full_attention"] * 32}, 131_072),
        ({"num_hidden_layers": 1, "text_config": {"num_hidden_layers": 32}}, 131_072),
    ],
)
def test_a_plain_cache_follows_the_configuration(fields: Any, per_token: int):
    network = with_config(7 * 10**9, num_local_experts=None, **fields)
    assert token_reading(network, "float16", 1).cache_bytes == per_token
    assert token_reading(network, "float16", 8192).cache_bytes == 8192 * per_token
    assert token_reading(network, "float32", 1).cache_bytes == 2 * per_token


@pytest.mark.parametrize(
    "fields",
    [
        {"kv_lora_rank": 512},
        {"layer_types": ["linear_attention", "full_attention"] * 16},
        {"sliding_window": 4096},
        {"is_encoder_decoder": True},
        {"num_kv_shared_layers": 10},
        {"mamba_d_state": 16},
        {"num_attention_heads": 0, "num_key_value_heads": 0},
    ],
)
def test_another_cache_is_not_modelled_and_says_so(fields: Any):
    reading = token_reading(with_config(47 * 10**9, **fields), "float16")
    assert reading.cache_bytes == 0
    assert "not modeled" in reading.unknown_cache


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[" * 100_000, b"[]", b"{}", b"\xff\xfe", b'{"num_hidden_layers": -1}',
        b'{"num_hidden_layers": NaN}', b'{"num_hidden_layers": "32"}', b'{"n_layer": 10000000}',
        b'{"hidden_size": {"a": "\\u202e"}}', b'{"n_layer": 2, "num_key_value_heads": 1e3}',
    ],
)  # fmt: skip
def test_another_or_a_forged_configuration_is_refused(text: bytes):
    with pytest.raises(StudioError) as raised:
        read_config(text, "config.json")
    assert str(raised.value).isprintable()


def gguf_cache(**fields: Any) -> int:
    keys = {key.replace("__", "."): value for key, value in fields.items()}
    metadata = {"block_count": 32, "embedding_length": 4096, "attention.head_count": 32, **keys}
    prefixed = {f"llama.{key}": value for key, value in metadata.items()}
    config = config_of_gguf({"general.architecture": "llama", **prefixed}, "a.gguf")
    return token_reading(Network(parameters=10**9, config=config), "float16", 8192).cache_bytes


def test_a_plain_cache_follows_the_metadata():
    assert gguf_cache() == 4 << 30
    assert gguf_cache(attention__head_count_kv=8) == 1 << 30
    assert gguf_cache(attention__key_length=64) == 2 << 30
    for key in ("attention__kv_lora_rank", "ssm__state_size", "attention__sliding_window",
                "attention__shared_kv_layers"):  # fmt: skip
        assert gguf_cache(**{key: 9}) == 0
    for wrong in ({"block_count": 10**9}, {"attention__head_count": "many"}):
        with pytest.raises(StudioError):
            gguf_cache(**wrong)


def test_what_does_not_fit_is_said_to_be_slower():
    reading = token_reading(Network(parameters=7 * 10**9), "4-bit")
    words = [speed(reading, is_too_large=large)[0] for large in (False, True)]
    assert ["RAM, which is slower" in one for one in words] == [False, True]
    assert all(one.startswith("At most") for one in words)


def test_a_copy_within_the_memory_measures_the_bandwidth():
    for device, rate, reads in (("cuda:0", 4e11, 4e11), ("cpu", 4e10, 6e10)):
        request = bandwidth_request(device, "b")
        found = bandwidth_of(finished(request, (0.001,), throughput=rate, throughput_unit="B/s"))
        assert found is not None
        assert found.bytes_per_s == pytest.approx(reads)  # a CPU reads what it writes, as well


def test_the_cache_counts_for_the_fit():
    fits = {
        context: ModelFit(card_at("model:6000"), llama_2_7b(), "4-bit", context=context)
        for context in (512, 3000, 4096)
    }
    assert {context: fit.inference.fits for context, fit in fits.items()} == {
        512: True, 3000: True, 4096: None,
    }  # fmt: skip
    assert ModelFit(card_at("model:6000"), llama_2_7b(), "4-bit", batch=2).inference.fits is False
    assert fits[512].training is None
    assert "does not train" in fits[512].answer().verdicts[1].told


def test_a_file_in_float32_keeps_its_cache_in_float32():
    config = read_config(json.dumps(MIXTRAL | {"num_local_experts": 0}).encode(), "c")
    sizes = [
        token_reading(
            Network(parameters=10, size_bytes=40, types_bytes={kind: 40}, config=config),
            AS_IN_FILE, 1,
        ).cache_bytes
        for kind in ("F16", "F32")
    ]  # fmt: skip
    assert sizes == [131_072, 262_144]
