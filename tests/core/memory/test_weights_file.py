import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.fit import ModelFit, step_bytes
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.networks import AS_IN_FILE, Network
from gpu_studio.core.memory.weights_file import ask_network, read_config, read_weights
from gpu_studio.core.notice import Tone
from gpu_studio.process.child_call import ChildAnswer, call_child
from tests.fakes.weights_files import (
    gguf_info,
    gguf_text,
    safetensors_fields,
    write_gguf,
    write_header,
    write_safetensors,
)

TWO = {"a.weight": ("F32", (20, 30)), "a.bias": ("BF16", (20,))}
LLAMA = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.attention.head_count": 8, "llama.attention.head_count_kv": 2,
    "llama.context_length": 512, "tokenizer.ggml.tokens": ["a"] * 5000,
    "tokenizer.ggml.scores": [0.5] * 5000, "general.alignment": 32,
}  # fmt: skip
GGUF = {
    "token_embd.weight": ("Q4_0", (64, 100)), "blk.0.attn_q.weight": ("Q4_0", (64, 64)),
    "blk.1.attn_q.weight": ("F16", (64, 64)), "output.weight": ("Q6_K", (256, 25)),
}  # fmt: skip


def refusal(path: Path) -> str:
    with pytest.raises(StudioError) as raised:
        read_weights(path)
    sentence = str(raised.value)
    assert sentence.isprintable() or "\u202f" in sentence
    assert len(sentence) < 250
    return sentence


def test_a_safetensors_file_is_read_by_its_header(tmp_path: Path):
    more = {**TWO, "scale": ("F32", ()), "none": ("F32", (0, 5))}
    network = read_weights(write_safetensors(tmp_path / "a.safetensors", more))
    assert (network.name, network.parameters) == ("a.safetensors", 621)
    assert network.size_bytes == 2444
    assert (network.own_type, network.is_packed) == ("float32", False)
    packed = write_safetensors(tmp_path / "p", {"q": ("I32", (90,)), "s": ("F16", (9,))})
    assert read_weights(packed).is_packed
    experts = {"model.layers.0.mlp.experts.0.up.weight": ("F16", (4, 4))}
    assert read_weights(write_safetensors(tmp_path / "e", experts)).has_experts


@pytest.mark.parametrize("version", [2, 3])
def test_a_gguf_file_is_read_by_its_header(tmp_path: Path, version: int):
    network = read_weights(write_gguf(tmp_path / "a.gguf", LLAMA, GGUF, version=version))
    assert network.parameters == 6400 + 4096 + 4096 + 6400
    # Where the next tensor begins is on a multiple of 32.
    assert network.size_bytes == pytest.approx(3600 + 2304 + 8192 + 5250, abs=4 * 32)
    assert network.own_type == ""  # PyTorch does not train in it
    assert network.config is not None
    assert (network.config.layers, network.config.heads) == (2, 8)
    assert network.config.cache_numbers(3) == 3 * 2 * 2 * 2 * 8
    assert network.config.is_tied is False  # the output has weights of its own


def test_llama_2_7b_has_its_published_size(tmp_path: Path):
    """llama-bench prints 3.56 GiB and 6.74 B for Q4_0 (its README); the output is in Q6_K."""
    tensors: dict[str, Any] = {"token_embd.weight": ("Q4_0", (4096, 32000))}
    for layer in range(32):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"blk.{layer}.{name}.weight"] = ("Q4_0", (4096, 4096))
        for name in ("ffn_gate", "ffn_up", "ffn_down"):
            tensors[f"blk.{layer}.{name}.weight"] = ("Q4_0", (4096, 11008))
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = ("F32", (4096,))
    tensors |= {"output_norm.weight": ("F32", (4096,)), "output.weight": ("Q6_K", (4096, 32000))}
    network = read_weights(write_gguf(tmp_path / "llama.gguf", LLAMA, tensors))
    assert f"{network.size_bytes / (1 << 30):.2f}" == "3.56"
    assert f"{network.parameters / 1e9:.2f}" == "6.74"


def test_split_files_are_one_network(tmp_path: Path):
    for number in (1, 2):
        name = f"m-{number:05}-of-00002"
        write_safetensors(tmp_path / f"{name}.safetensors", {f"t{number}": ("F16", (number, 8))})
        write_gguf(
            tmp_path / f"{name}.gguf", LLAMA if number == 1 else {},
            {f"t{number}": ("F16", (8, number))},
        )  # fmt: skip
    for name in ("m-00002-of-00002.safetensors", "m-00002-of-00002.gguf"):
        assert read_weights(tmp_path / name).parameters == 24
    config = read_weights(tmp_path / "m-00002-of-00002.gguf").config
    assert config is not None
    assert config.layers == 2  # only the first part says so
    (tmp_path / "m-00001-of-00002.gguf").unlink()
    assert "m-00001-of-00002.gguf is missing" in refusal(tmp_path / "m-00002-of-00002.gguf")


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{:064}\nsize {}\n"


@pytest.mark.parametrize("name", ["model.safetensors", "m.gguf", "epoch_9.pth.tar"])
def test_a_pointer_of_git_lfs_is_named_and_its_size_answers(tmp_path: Path, name: str):
    """bryce-hoehn/Qwen3.5-18B-REAP-A3B-Coding has such a file."""
    path = tmp_path / name
    path.write_text(POINTER.format(0, 5_367_324_112))
    network = read_weights(path)
    assert network.size_bytes == 5_367_324_112
    assert "git lfs pull" in network.note
    assert fits(network, 6144)
    assert not fits(network, 4096)


def test_pointers_to_the_parts_of_a_model_count_together(tmp_path: Path):
    for number in (1, 2):
        path = tmp_path / f"m-{number:05}-of-00002.safetensors"
        path.write_text(POINTER.format(number, 3 << 30))
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    network = read_weights(path)
    assert network.size_bytes == 6 << 30
    assert "2 of 2 files" in network.note
    assert network.config is not None
    assert network.config.layers == 32


def test_an_index_without_its_parts_answers_by_its_size(tmp_path: Path):
    path = tmp_path / "model.safetensors.index.json"
    names = [f"model-{number:05}-of-00003.safetensors" for number in (1, 2, 3)]
    weights = {"model.layers.0.mlp.experts.1.up.weight": names[0], "lm_head.weight": names[2]}
    path.write_text(json.dumps({"metadata": {"total_size": 3 << 30}, "weight_map": weights}))
    network = read_weights(path)
    assert (network.size_bytes, network.has_experts) == (3 << 30, True)
    assert "None of them is here" in network.note
    assert fits(network, 4096)
    for name in names:
        write_safetensors(tmp_path / name, {name: ("F16", (8, 8))})
    assert read_weights(path).parameters == 3 * 64
    path.write_text('{"weight_map": {}}')
    for name in names:
        (tmp_path / name).unlink()
    assert "no size" in refusal(path)


def fits(network: Network, mib: int) -> bool | None:
    answer = ModelFit(card_at(f"model:{mib}"), network, AS_IN_FILE).answer()
    assert answer.sentence == network.note
    assert len(answer.verdicts) == 1  # whether it can be trained is not known
    return answer.verdicts[0].notice.tone is Tone.GOOD


SMALL = {
    "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096, "vocab_size": 32000,
}  # fmt: skip
QWEN = {
    "num_hidden_layers": 40, "full_attention_interval": 4, "hidden_size": 2048,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 10,
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "num_experts": 128,
    "num_experts_per_tok": 8, "moe_intermediate_size": 512, "vocab_size": 248320,
}  # fmt: skip


def test_a_mixture_with_linear_layers_follows_from_its_configuration():
    """The config.json of bryce-hoehn/Qwen3.5-18B-REAP-A3B-Coding."""
    config = read_config(json.dumps(QWEN).encode())
    assert config is not None
    assert config.cache_numbers(1) == 10 * 2 * 256 * 2
    assert config.state_numbers == 30 * 32 * 128 * 128
    network = Network(parameters=18 * 10**9, has_experts=True, config=config)
    fit = ModelFit(card_at("model:24576"), network, "16-bit")
    assert fit.cache_bytes == 4096 * 10_240 * 2
    idle = 40 * 120 * 3 * 2048 * 512
    assert step_bytes(fit) == pytest.approx(2 * (18 * 10**9 - idle) + fit.cache_bytes, rel=1e-6)
    assert "10 layers keep 1024 numbers a token" in fit.answer().details
    assert "state" in fit.answer().details


GEMMA = {
    "general.architecture": "gemma4", "gemma4.block_count": 35, "gemma4.attention.head_count": 8,
    "gemma4.attention.head_count_kv": 1, "gemma4.attention.key_length": 512,
    "gemma4.attention.value_length": 512, "gemma4.attention.key_length_swa": 256,
    "gemma4.attention.value_length_swa": 256, "gemma4.attention.sliding_window": 512,
    "gemma4.attention.shared_kv_layers": 20, "gemma4.embedding_length": 1536,
    "gemma4.attention.sliding_window_pattern": ([True] * 4 + [False]) * 7,
}  # fmt: skip


def test_layers_that_use_the_keys_of_others_keep_none(tmp_path: Path):
    """As llama.cpp logs it: the first 15 layers keep a cache, of which 12 have a window."""
    network = read_weights(write_gguf(tmp_path / "g.gguf", GEMMA, GGUF))
    assert network.config is not None
    for tokens in (100, 8192):
        expected = 3 * 1024 * tokens + 12 * 512 * min(tokens, 512)
        assert network.config.cache_numbers(tokens) == expected


def test_types_that_are_not_known_are_counted_by_the_files_own_size(tmp_path: Path):
    """ik_llama.cpp has types of its own, such as 144 and 156."""
    infos = gguf_info("a", (256,), 144, 0) + gguf_info("b", (256, 4), 156, 160)
    path = write_gguf(
        tmp_path / "ik.gguf", LLAMA, {}, infos=infos, counts=(2, len(LLAMA)), data_bytes=1000
    )
    network = read_weights(path)
    assert (network.parameters, network.size_bytes) == (256 * 5, 1000)


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    fields = safetensors_fields(TWO)
    change(fields)
    return json.dumps(fields).encode()


def at(begin: int, end: int) -> bytes:
    return changed(lambda fields: fields["a.bias"].update(data_offsets=[begin, end]))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b'{"a":' * 100_000, "damaged"),
        (b'{"\xff": {}}', "damaged"),
        (b"{}", "has no tensors"),
        (changed(lambda fields: fields["a.bias"].update(shape=[-20])), "damaged"),
        (changed(lambda fields: fields["a.bias"].update(shape=[1 << 61, 1 << 61])), "too many"),
        (changed(lambda fields: fields["a.bias"].pop("data_offsets")), "damaged"),
        (at(2440, 2480), "cut off: its tensors"),
    ],
)  # fmt: skip
def test_a_forged_safetensors_header_is_refused(tmp_path: Path, header: bytes, reason: str):
    assert reason in refusal(write_header(tmp_path / "a.safetensors", header, 2440))


def test_headers_that_are_too_long_or_end_early(tmp_path: Path):
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write((10 << 30).to_bytes(8, "little") + b"{}")
        file.truncate(11 << 30)  # a hole: the file is as large as it says
    assert "damaged" in refusal(path)
    for content in (
        b"",
        b"\x00",
        b"PK\x03\x04" + b"\x00" * 90,
        b"[1]",
        b"GGUF",
        b"\xff" * 8 + b"{}",
    ):
        path.write_bytes(content)
        assert refusal(path)
    assert "folder" in refusal(tmp_path)
    assert "does not exist" in refusal(tmp_path / "no")
    whole = write_gguf(path, LLAMA, GGUF).read_bytes()
    for length in (5, 23, 60, 4000, 60_000, len(whole) - 6000):
        path.write_bytes(whole[:length])
        assert "cut off" in refusal(path)


def info(shape: list[int], number: int = 0, offset: int = 0) -> bytes:
    return gguf_info("t", shape, number, offset)


ONE_KEY = gguf_text("k") + struct.pack("<II", 4, 1)


@pytest.mark.parametrize(
    ("keys", "infos", "counts", "reason"),
    [
        (ONE_KEY, info([64, 1 << 63, 1 << 63]), (1, 1), "too many"),
        (ONE_KEY, info([64], 0, 1 << 40), (1, 1), "cut off"),
        (ONE_KEY, struct.pack("<Q", 1 << 60), (1, 1), "damaged"),
        (ONE_KEY, info([64]), (1 << 62, 1), "damaged"),
        (ONE_KEY, b"", (0, 1), "no tensors"),
        (gguf_text("k") + struct.pack("<I", 99), info([64]), (1, 1), "damaged"),
        (gguf_text("k") + struct.pack("<IIQ", 9, 8, 1 << 60), info([64]), (1, 1), "damaged"),
        (gguf_text("k") + struct.pack("<IQ", 8, 1 << 63), info([64]), (1, 1), "damaged"),
        (b"", info([64]), (1, 1 << 40), "damaged"),
        (gguf_text("general.alignment") + struct.pack("<II", 4, 0), info([64]), (1, 1), "damaged"),
        (gguf_text("general.alignment") + struct.pack("<If", 6, float("inf")), info([64]), (1, 1),
         "damaged"),
    ],
)  # fmt: skip
def test_a_forged_gguf_header_is_refused(
    tmp_path: Path, keys: bytes, infos: bytes, counts: tuple[int, int], reason: str
):
    path = tmp_path / "a.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, *counts)
    path.write_bytes(head + keys + infos + b"\x00" * 4096)
    assert reason in refusal(path)


def test_a_child_reads_the_file(tmp_path: Path):
    path = write_gguf(tmp_path / "ä.gguf", LLAMA, GGUF)
    assert ask_network(path, call_child) == read_weights(path)
    path.write_bytes(b"GGUF")
    with pytest.raises(StudioError, match="cut off"):
        ask_network(path, call_child)


def test_a_child_without_an_answer_is_a_sentence(tmp_path: Path):
    path = write_gguf(tmp_path / "a.gguf", LLAMA, GGUF)
    ends = {
        "takes longer than 60 s": ChildAnswer(is_late=True),
        "more memory": ChildAnswer(exit_code=-9),
        "cannot be read": ChildAnswer(b"\x93garbage", 0),
    }
    for reason, end in ends.items():
        with pytest.raises(StudioError, match=reason):
            ask_network(path, lambda *_, end=end, **_limits: end)
    with pytest.raises(StudioError, match="does not exist"):
        ask_network(tmp_path / "no", call_child)


def test_any_bytes_are_a_network_or_a_sentence(tmp_path: Path):
    """Every byte of two small headers changed, and cut off at every place."""
    small = {"t": ("Q4_0", (32, 2))}
    contents = (
        write_gguf(tmp_path / "a.gguf", {"general.architecture": "x", "x.block_count": 1}, small),
        write_safetensors(tmp_path / "b.safetensors", {"t": ("F16", (4, 2))}),
    )
    path = tmp_path / "c"
    for content in [one.read_bytes() for one in contents]:
        variants = [content[:length] for length in range(len(content))]
        for index in range(len(content)):
            for byte in (0, 0x7F, 0xFF):
                variants.append(content[:index] + bytes([byte]) + content[index + 1 :])
        for variant in variants:
            path.write_bytes(variant)
            with contextlib.suppress(StudioError):
                assert isinstance(read_weights(path), Network)


def test_other_versions_of_gguf_are_named(tmp_path: Path):
    path = tmp_path / "a.gguf"
    for version, reason in ((1, "version 1"), (9, "version 9")):
        assert reason in refusal(write_gguf(path, LLAMA, GGUF, version=version))
