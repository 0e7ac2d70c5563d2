"""What a model reads for a token, against published sizes, and the bound that follows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.fit import model_fit
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.networks import AS_IN_FILE, Network, known_network, network_of_count
from gpu_studio.core.memory.token_speed import (
    Bandwidth,
    Missing,
    arithmetic,
    bandwidth_of,
    bandwidth_request,
    bound_sentence,
    token_bound,
    token_reading,
)
from gpu_studio.core.memory.weights.model_config import config_of_gguf, read_config
from gpu_studio.core.memory.weights.weights_file import read_weights
from tests.fakes.run_answers import finished
from tests.fakes.weights_files import write_gguf, write_safetensors

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
CARD = Bandwidth(copy_bytes_per_s=448e9, is_cpu=False, source="a copy of 256 MiB")
RAM = Bandwidth(copy_bytes_per_s=40e9, is_cpu=True, source="a copy of 256 MiB")
LLAMA_2 = {
    "general.architecture": "llama", "llama.block_count": 32, "llama.embedding_length": 4096,
    "llama.feed_forward_length": 11008, "llama.attention.head_count": 32,
    "llama.context_length": 4096,
}  # fmt: skip
MIXTRAL = {
    "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    "max_position_embeddings": 32768, "sliding_window": None, "tie_word_embeddings": False,
}  # fmt: skip


def llama_2_7b(path: Path) -> Network:
    """Return Llama 2 7B as llama.cpp quantizes it to Q4_0: with its output in Q6_K."""
    tensors: dict[str, Any] = {"token_embd.weight": ("Q4_0", (4096, 32000))}
    for layer in range(32):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"blk.{layer}.{name}.weight"] = ("Q4_0", (4096, 4096))
        for name in ("ffn_gate", "ffn_up", "ffn_down"):
            tensors[f"blk.{layer}.{name}.weight"] = ("Q4_0", (4096, 11008))
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = ("F32", (4096,))
    tensors |= {"output_norm.weight": ("F32", (4096,)), "output.weight": ("Q6_K", (4096, 32000))}
    return read_weights(write_gguf(path / "llama.gguf", LLAMA_2, tensors))


def test_llama_2_7b_has_its_published_sizes(tmp_path: Path):
    """llama-bench prints 3.56 GiB and 6.74 B (its README); llama.cpp 2048 MiB of cache."""
    network = llama_2_7b(tmp_path)
    reading = token_reading(network, AS_IN_FILE, 4096)
    assert f"{reading.weights_bytes / GIB:.2f}" == "3.56"
    assert f"{network.parameters / 1e9:.2f}" == "6.74"
    assert reading.cache_bytes == 2 * GIB
    # A token reads its row of the input table, and everything else.
    assert reading.weights_bytes - reading.read_weights_bytes == 4096 * 32000 * 18 // 32
    bound = token_bound(reading, CARD)
    assert bound.tokens_per_s == pytest.approx(448e9 / (reading.read_weights_bytes + 2 * GIB))
    assert bound.first_tokens_per_s == pytest.approx(448e9 / reading.read_weights_bytes)
    sentence = bound_sentence(reading, bound, CARD, "this card").replace("\u202f", " ")
    assert sentence.startswith(
        "At most 75.9 tokens a second on this card with 4,096 tokens of context: its measured "
        "448 GB/s over 5.90 GB read per token."
    )
    assert "two thirds to all" in sentence
    known = known_network("Llama 2 7B")
    assert known is not None
    assert token_reading(known, "float16").cache_bytes == reading.cache_bytes


def test_the_bound_is_written_with_the_reads_that_it_adds_up(tmp_path: Path):
    reading = token_reading(llama_2_7b(tmp_path), AS_IN_FILE, 1024)
    rows = arithmetic(reading, token_bound(reading, CARD), CARD)
    (how,) = [row[2] for row in rows if row[0] == "At most"]
    rate = next(row[1] for row in rows if row[0] == "Card's memory")
    assert how.endswith(f"÷ {rate})")


def test_only_a_bare_count_may_hide_a_separate_input_table(tmp_path: Path):
    network = Network(name="tensors alone", tensors=(1000, 10))
    assert not token_reading(network, "float16").is_by_number
    assert not token_reading(llama_2_7b(tmp_path), AS_IN_FILE).is_by_number
    assert token_reading(network_of_count(1010), "float16").is_by_number


def test_several_texts_share_the_weights(tmp_path: Path):
    network = llama_2_7b(tmp_path)
    one, four = (token_reading(network, AS_IN_FILE, 1024, batch) for batch in (1, 4))
    assert four.cache_bytes == 4 * one.cache_bytes
    bound = token_bound(four, CARD)
    step_s = (one.read_weights_bytes + 4 * one.cache_bytes) / 448e9
    assert bound.tokens_per_s == pytest.approx(4 / step_s)
    assert "for 4 texts at once" in bound_sentence(four, bound, CARD, "this card").replace(
        "\u202f", " "
    )


def mixtral(path: Path, config: dict[str, Any] | None = MIXTRAL) -> Network:
    tensors: dict[str, Any] = {
        f"model.{name}.weight": ("BF16", (32000, 4096)) for name in ("embed_tokens", "lm_head")
    }
    for layer in range(32):
        at = f"model.layers.{layer}"
        for name, heads in (("q", 32), ("k", 8), ("v", 8), ("o", 32)):
            tensors[f"{at}.self_attn.{name}_proj.weight"] = ("BF16", (128 * heads, 4096))
        tensors[f"{at}.block_sparse_moe.gate.weight"] = ("BF16", (8, 4096))
        for expert in range(8):
            for name in ("w1", "w2", "w3"):
                at_expert = f"{at}.block_sparse_moe.experts.{expert}"
                tensors[f"{at_expert}.{name}.weight"] = ("BF16", (14336, 4096))
    path.mkdir(exist_ok=True)
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    return read_weights(write_safetensors(path / "mixtral.safetensors", tensors))


def test_a_token_reads_the_experts_that_it_uses(tmp_path: Path):
    """Jiang et al. 2024, Mixtral of Experts: 47 B parameters, of which a token uses 13 B."""
    network = mixtral(tmp_path)
    assert f"{network.parameters / 1e9:.1f}" == "46.7"
    reading = token_reading(network, AS_IN_FILE, 1)
    used = (reading.read_weights_bytes + reading.rows_bytes) / 2
    assert f"{used / 1e9:.1f}" == "12.9"
    assert reading.cache_bytes == 128 << 10  # 32 layers × 8 heads × 128 × keys and values × 2 bytes
    assert any(
        "uses 2 of 8 experts" in how
        for _, _, how in arithmetic(reading, token_bound(reading, CARD))
    )
    unsaid = token_reading(mixtral(tmp_path / "alone", None), AS_IN_FILE)
    bound = token_bound(unsaid, CARD)
    assert (bound.missing, bound.tokens_per_s) == (Missing.EXPERTS, None)
    assert "mixture of experts" in bound_sentence(unsaid, bound, CARD, "this card")
    counted = network_of_count(47 * 10**9, read_config(json.dumps(MIXTRAL).encode(), "c"))
    assert token_bound(token_reading(counted, "4-bit"), CARD).missing is Missing.EXPERTS


@pytest.mark.parametrize(
    ("fields", "per_token", "at_8192"),
    [
        ({}, 131_072, 1 << 30),
        ({"num_key_value_heads": None}, 4 * 131_072, 4 << 30),
        ({"multi_query": True, "num_key_value_heads": None}, 16_384, 128 << 20),
        ({"head_dim": 64}, 65_536, 512 << 20),
        ({"model_type": "mistral", "sliding_window": 4096}, 131_072, 512 << 20),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, 131_072,
         1 << 30),
        ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 16}, 131_072,
         768 << 20),
        ({"model_type": "gemma2", "sliding_window": 4096}, 131_072, 768 << 20),
        ({"sliding_window": 1024, "sliding_window_pattern": 4}, 131_072, 352 << 20),
        ({"sliding_window": 1024,
          "layer_types": ["sliding_attention"] * 31 + ["full_attention"]}, 131_072, 156 << 20),
        ({"attention_chunk_size": 4096,
          "layer_types": ["chunked_attention", "full_attention"] * 16}, 131_072, 768 << 20),
        ({"sliding_window": 1024, "attention_chunk_size": 4096,
          "layer_types": ["sliding_attention"] * 16 + ["chunked_attention", "full_attention"] * 8},
         131_072, 448 << 20),
        ({"num_hidden_layers": 1, "text_config": {"num_hidden_layers": 32}}, 131_072, 1 << 30),
    ],
)  # fmt: skip
def test_the_cache_follows_the_configuration(fields: Any, per_token: int, at_8192: int):
    base = {**MIXTRAL, "num_local_experts": None, **fields}
    config = read_config(json.dumps(base).encode(), "config.json")
    network = network_of_count(7 * 10**9, config)
    assert token_reading(network, "float16", 1).cache_bytes == per_token
    assert token_reading(network, "float16", 8192).cache_bytes == at_8192
    assert token_reading(network, "float32", 1).cache_bytes == 2 * per_token


@pytest.mark.parametrize(
    ("first_with_a_window", "windows"), [(0, [4096]), (16, [None, 4096]), (32, [None])]
)
def test_layers_without_a_cache_are_none(first_with_a_window: int, windows: Any):
    fields = {"sliding_window": 4096, "use_sliding_window": True}
    text = json.dumps({**MIXTRAL, **fields, "max_window_layers": first_with_a_window})
    cache = read_config(text.encode(), "config.json").cache
    assert [one.window for one in cache] == windows
    assert sum(one.layers for one in cache) == 32


@pytest.mark.parametrize(
    "fields",
    [
        {"kv_lora_rank": 512},
        {"layer_types": ["linear_attention", "full_attention"] * 16},
        {"layer_types": ["full_attention"]},
        {"layer_types": ["sliding_attention"] * 32},
        {"is_encoder_decoder": True},
        {"num_kv_shared_layers": 10},
        {"mamba_d_state": 16},
        {"model_type": "new", "sliding_window": 4096},
        {"num_attention_heads": 0, "num_key_value_heads": 0},
    ],
)
def test_what_is_not_modelled_says_so(fields: Any):
    config = read_config(json.dumps({**MIXTRAL, **fields}).encode(), "config.json")
    assert (config.cache, bool(config.unknown_cache)) == ((), True)
    assert "not modeled" in config.unknown_cache


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[" * 100_000, b"[]", b'"x"', b"{}", b'{"weight_map": {}}', b"\xff\xfe",
        b'{"num_hidden_layers": -1}', b'{"num_hidden_layers": 1e9}', b'{"num_hidden_layers": NaN}',
        b'{"num_hidden_layers": true}', b'{"num_hidden_layers": "32"}', b'{"n_layer": 10000000}',
        b'{"n_layer": ' + b"9" * 5000 + b"}", b'{"hidden_size": {"a": "\\u202e"}}',
    ],
)  # fmt: skip
def test_another_or_a_forged_configuration_is_refused(text: bytes):
    with pytest.raises(StudioError) as raised:
        read_config(text, "config.json")
    assert str(raised.value).isprintable()


def gguf_cache(**fields: Any) -> tuple[int, str]:
    keys = {key.replace("__", "."): value for key, value in fields.items()}
    kind = keys.pop("kind", "llama")
    metadata = {"block_count": 32, "embedding_length": 4096, "attention.head_count": 32, **keys}
    prefixed = {f"{kind}.{key}": value for key, value in metadata.items()}
    config = config_of_gguf({"general.architecture": kind, **prefixed}, 0, "a.gguf")
    network = network_of_count(10**9, config)
    return token_reading(network, "float16", 8192).cache_bytes, config.unknown_cache


def test_the_cache_follows_the_metadata():
    assert gguf_cache() == (4 << 30, "")
    assert gguf_cache(attention__head_count_kv=8) == (1 << 30, "")
    assert gguf_cache(attention__head_count_kv=(8,) * 16 + (0,) * 16) == (512 << 20, "")
    lengths = {"attention__key_length": 64, "attention__value_length": 192}
    assert gguf_cache(**lengths) == (4 << 30, "")
    assert gguf_cache(kind="gemma2", attention__sliding_window=4096) == (3 << 30, "")
    every = {"attention__sliding_window": 1024, "attention__sliding_window_pattern": (True,) * 32}
    assert gguf_cache(**every) == (512 << 20, "")
    assert gguf_cache(nextn_predict_layers=16) == (2 << 30, "")
    for fields in ({"attention__kv_lora_rank": 512}, {"ssm__state_size": 8},
                   {"attention__sliding_window": 4096}, {"attention__shared_kv_layers": 9},
                   {"attention__head_count_kv": (8, 8)}):  # fmt: skip
        size_bytes, reason = gguf_cache(**fields)
        assert (size_bytes, "not modeled" in reason) == (0, True)
    for wrong in ({"block_count": 10**9}, {"attention__head_count_kv": (8, -1)},
                  {"attention__head_count": "many"}):  # fmt: skip
        with pytest.raises(StudioError):
            gguf_cache(**wrong)


def test_layers_beyond_the_card_are_in_ram(tmp_path: Path):
    network = llama_2_7b(tmp_path)
    reading = token_reading(network, AS_IN_FILE, 4096)
    per_layer = (reading.in_layers_bytes + reading.cache_bytes) / 32
    fixed = reading.kept_bytes - 32 * per_layer
    room = int(fixed + 20.5 * per_layer)
    assert token_bound(reading, CARD, free_bytes=room).missing is Missing.RAM_BANDWIDTH
    assert token_bound(reading, None, free_bytes=room, ram=RAM).missing is Missing.BANDWIDTH
    bound = token_bound(reading, CARD, free_bytes=room, ram=RAM, ram_bytes=16 * GIB)
    assert bound.ram_layers == 12
    in_ram = 12 * per_layer
    seconds = (reading.step_bytes - in_ram) / 448e9 + in_ram / 60e9
    assert bound.tokens_per_s == pytest.approx(1 / seconds)
    assert "12 layers are in the PC's RAM" in bound_sentence(
        reading, bound, CARD, "this card"
    ).replace("\u202f", " ")
    small = token_bound(reading, CARD, free_bytes=room, ram=RAM, ram_bytes=1 * GIB)
    assert (small.missing, small.tokens_per_s) == (Missing.ROOM, None)
    nothing = token_bound(reading, None, free_bytes=0, ram=RAM)
    assert nothing.tokens_per_s == pytest.approx(60e9 / reading.step_bytes)
    assert token_bound(reading, CARD, free_bytes=reading.kept_bytes).ram_layers == 0
    counted = token_reading(10**10, "8-bit")
    half = token_bound(counted, CARD, free_bytes=counted.kept_bytes // 2, ram=RAM)
    assert (half.ram_layers, round(half.ram_share, 3)) == (None, 0.5)


def test_without_a_bandwidth_there_is_no_number():
    reading = token_reading(7 * 10**9, "4-bit")
    bound = token_bound(reading, None)
    assert (bound.tokens_per_s, bound.missing) == (None, Missing.BANDWIDTH)
    sentence = bound_sentence(reading, bound, None, "this card")
    assert not any(character.isdigit() for character in sentence)
    assert "not been measured" in sentence


def test_a_copy_within_the_memory_measures_the_bandwidth():
    request = bandwidth_request("cuda:0", "b")
    result = finished(request, (0.001,), throughput=4e11, throughput_unit="B/s")
    found = bandwidth_of(result)
    assert found is not None
    assert (found.bytes_per_s, found.is_cpu) == (4e11, False)
    cpu = bandwidth_of(
        finished(bandwidth_request("cpu", "b"), (0.001,), throughput=4e10, throughput_unit="B/s")
    )
    assert cpu is not None
    assert cpu.bytes_per_s == pytest.approx(6e10)  # a CPU reads what it writes, which a copy omits


def test_cache_and_activations_count_for_the_fit():
    network = known_network("Llama 2 7B")
    assert network is not None
    card = card_at("model:6000")
    fits = {
        context: model_fit(card, network, "4-bit", context=context).inference.fits
        for context in (512, 2048, 4096)
    }
    assert fits == {512: True, 2048: True, 4096: False}
    fit = model_fit(card, network, "4-bit", context=4096)
    reading = fit.reading
    assert fit.inference.least_bytes >= reading.kept_bytes
    assert fit.training is None
    assert "does not train them" in fit.sentence
