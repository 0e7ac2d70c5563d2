import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.networks import Network
from gpu_studio.core.memory.weights_file import ask_network, read_weights
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
    assert network.config.cache_numbers == 2 * 2 * 2 * 8
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


def test_a_pointer_of_git_lfs_says_so(tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5368709120\n")
    assert "git lfs pull" in refusal(path)


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


def info(shape: list[int], number: int = 0, offset: int = 0, name: str = "t") -> bytes:
    return gguf_info(name, shape, number, offset)


@pytest.mark.parametrize(
    ("infos", "tensors", "reason"),
    [
        (info([64, 1 << 63, 1 << 63]), 1, "too many"),
        (info([64], 0, 1 << 40), 1, "cut off"),
        (struct.pack("<Q", 1 << 60), 1, "damaged"),
        (info([64]), 1 << 62, "damaged"),
        (b"", 0, "no tensors"),
    ],
)
def test_a_forged_gguf_tensor_is_refused(tmp_path: Path, infos: bytes, tensors: int, reason: str):
    path = tmp_path / "a.gguf"
    write_gguf(path, {"a": 1}, {}, infos=infos, counts=(tensors, 1), data_bytes=4096)
    assert reason in refusal(path)


@pytest.mark.parametrize(
    ("keys", "count"),
    [
        (gguf_text("k") + struct.pack("<I", 99), 1),
        (gguf_text("k") + struct.pack("<IIQ", 9, 8, 1 << 60), 1),
        (gguf_text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 9, 1),
        (gguf_text("k") + struct.pack("<IQ", 8, 1 << 63), 1),
        (b"", 1 << 40),
        (gguf_text("general.alignment") + struct.pack("<II", 4, 0), 1),
        (gguf_text("general.alignment") + struct.pack("<If", 6, float("inf")), 1),
    ],
)
def test_forged_gguf_metadata_is_refused(tmp_path: Path, keys: bytes, count: int):
    path = tmp_path / "a.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, count)
    path.write_bytes(head + keys + info([64]) + b"\x00" * 4096)
    assert "damaged" in refusal(path)


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
