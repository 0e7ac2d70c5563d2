"""Files of weights: written as their formats say, and forged."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.networks import Network, WeightsFormat
from gpu_studio.core.memory.weights import file_tensor, gguf_header, safetensors_header
from gpu_studio.core.memory.weights.weights_call import MODULE, ask_weights
from gpu_studio.core.memory.weights.weights_file import read_weights
from gpu_studio.process.child_call import ChildAnswer, ChildCall
from tests.fakes.weights_files import (
    gguf_info,
    gguf_text,
    safetensors_fields,
    write_gguf,
    write_header,
    write_safetensors,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    assert (network.name, network.tensors) == ("a.safetensors", (600, 20, 1))
    assert network.sizes_bytes == (2400, 40, 4)
    assert network.types_bytes == {"F32": 2404, "BF16": 40}
    assert not network.is_packed
    packed = write_safetensors(tmp_path / "p", {"q": ("I32", (90,)), "s": ("F16", (9,))})
    assert read_weights(packed).is_packed


@pytest.mark.parametrize("version", [2, 3])
def test_a_gguf_file_is_read_by_its_header(tmp_path: Path, version: int):
    network = read_weights(write_gguf(tmp_path / "a.gguf", LLAMA, GGUF, version=version))
    assert network.format is WeightsFormat.GGUF
    assert network.tensors == (6400, 4096, 4096, 6400)
    assert network.sizes_bytes == (3600, 2304, 8192, 5250)
    assert network.config is not None
    assert (network.config.layers, network.config.vocabulary) == (2, 100)
    assert network.rows.size_bytes == 3600  # the output has weights of its own
    assert network.in_layers.size_bytes == 2304 + 8192


def test_split_files_are_one_network(tmp_path: Path):
    for number in (1, 2):
        name = f"m-{number:05}-of-00002"
        write_safetensors(tmp_path / f"{name}.safetensors", {f"t{number}": ("F16", (number, 8))})
        write_gguf(
            tmp_path / f"{name}.gguf", {**LLAMA, "split.count": 2} if number == 1 else {},
            {f"t{number}": ("F16", (8, number))},
        )  # fmt: skip
    index = {"metadata": {}, "weight_map": {
        f"t{number}": f"m-{number:05}-of-00002.safetensors" for number in (1, 2)}}  # fmt: skip
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    for name in (path.name, "m-00002-of-00002.safetensors", "m-00002-of-00002.gguf"):
        network = read_weights(tmp_path / name)
        assert (network.tensors, network.files) == ((8, 16), 2)
    (tmp_path / "m-00001-of-00002.gguf").unlink()
    assert "m-00001-of-00002.gguf is missing" in refusal(tmp_path / "m-00002-of-00002.gguf")
    alone = write_gguf(tmp_path / "renamed.gguf", {**LLAMA, "split.count": 3}, GGUF)
    assert "one of 3 parts" in refusal(alone)
    index["weight_map"]["t3"] = "m-00001-of-00002.safetensors"
    path.write_text(json.dumps(index))
    assert "different tensors" in refusal(path)
    for name in ("../m.safetensors", "/etc/passwd", "c:\\x", "..", "gone\u202e.safetensors", ""):
        path.write_text(json.dumps({"weight_map": {"t1": name}}))
        assert "next to it" in refusal(path) or "missing" in refusal(path)
    twice = tmp_path / "m-00002-of-00002.safetensors"
    write_safetensors(twice, {"t1": ("F16", (1, 8))})
    assert "two of its parts" in refusal(twice)


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    fields = safetensors_fields(TWO)
    change(fields)
    return json.dumps(fields).encode()


def at(begin: int, end: int) -> bytes:
    return changed(lambda fields: fields["a.bias"].update(data_offsets=[begin, end]))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": {"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}}', "list of tensors"),
        (b'{"a": {}, "a": {}}', "“a” is there twice"),
        (b'{"\xff": {}}', "not a safetensors file"),
        (b"{}", "has no tensors"),
        (b'{"__metadata__": {"format": "pt"}}', "has no tensors"),
        (changed(lambda fields: fields["a.bias"].update(shape=[-20])), "list of tensors"),
        (changed(lambda fields: fields["a.bias"].update(shape=[1 << 61, 1 << 61])), "too large"),
        (changed(lambda fields: fields["a.bias"].update(shape=[2.0, 10])), "list of tensors"),
        (changed(lambda fields: fields["a.bias"].update(shape=[1 << 70])), "list of tensors"),
        (changed(lambda fields: fields["a.bias"].update(dtype="<b>F\u202e32</b>")), "unknown type"),
        (changed(lambda fields: fields["a.bias"].update(dtype=["F32"])), "list of tensors"),
        (changed(lambda fields: fields["a.bias"].pop("data_offsets")), "list of tensors"),
        (at(2000, 2040), "overlap"),
        (at(2440, 2480), "nothing says"),
        (at(2400, 2444), "does not fill"),
        (at(2440, 2400), "does not fill"),
        (at(-40, 0), "list of tensors"),
        (changed(lambda fields: fields.update(c={"dtype": "U8", "shape": [1 << 40],
         "data_offsets": [2440, 2440 + (1 << 40)]})), "cut off"),
    ],
)  # fmt: skip
def test_a_forged_safetensors_header_is_refused(tmp_path: Path, header: bytes, reason: str):
    assert reason in refusal(write_header(tmp_path / "a.safetensors", header, 2440))


def test_headers_that_are_too_long_or_end_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a"
    path.write_bytes((10 << 30).to_bytes(8, "little") + b"{}")
    assert "claims 10\u202fGiB" in refusal(path)
    path.write_bytes(b"\xff" * 8 + b"{}")
    assert "claims" in refusal(path)
    with path.open("wb") as file:
        file.write((10 << 30).to_bytes(8, "little") + b"{}")
        file.truncate(11 << 30)  # a hole: the file is as large as it says
    assert "The format allows 100 MB" in refusal(path)
    for content in (b"", b"\x00", b"PK\x03\x04" + b"\x00" * 90, b"[1]", b"GGUF", b'{"weight_map":'):
        path.write_bytes(content)
        assert refusal(path)
    assert "folder" in refusal(tmp_path)
    assert "does not exist" in refusal(tmp_path / "no")
    whole = write_gguf(path, LLAMA, GGUF).read_bytes()
    for length in (5, 23, 60, 4000, 60_000, len(whole) - 3000):
        path.write_bytes(whole[:length])
        assert "cut off" in refusal(path)
    for module in (file_tensor, gguf_header, safetensors_header):
        monkeypatch.setattr(module, "MOST_TENSORS", 1, raising=False)
    assert "too many tensors" in refusal(write_safetensors(path, TWO))
    assert "too many tensors" in refusal(write_gguf(path, LLAMA, GGUF))


def info(shape: list[int], number: int = 0, offset: int = 0, name: str = "t") -> bytes:
    return gguf_info(name, shape, number, offset)


@pytest.mark.parametrize(
    ("infos", "tensors", "reason"),
    [
        (info([64, 1 << 63, 1 << 63]), 1, "too large"),
        (info([1] * 9), 1, "9 sides"),
        (info([64], 4), 1, "type 4"),
        (info([64], 1 << 31), 1, "type 2147483648"),
        (info([33], 2), 1, "multiple of 32"),
        (info([64], 0, 7), 1, "begins at 7"),
        (info([64], 0, 1 << 40), 1, "cut off"),
        (info([64]) + info([64]), 2, "twice"),
        (info([64]) + info([64], name="u"), 2, "overlap"),
        (struct.pack("<Q", 1 << 60), 1, "a name of"),
        (info([64]), 1 << 62, "too many tensors"),
        (info([64]), 1_000_000, "too many tensors"),
        (b"", 0, "no tensors"),
    ],
)
def test_a_forged_gguf_tensor_is_refused(tmp_path: Path, infos: bytes, tensors: int, reason: str):
    path = tmp_path / "a.gguf"
    write_gguf(path, {"a": 1}, {}, infos=infos, counts=(tensors, 1), data_bytes=4096)
    assert reason in refusal(path)


@pytest.mark.parametrize(
    ("keys", "count", "reason"),
    [
        (gguf_text("k") + struct.pack("<I", 99), 1, "metadata of type 99"),
        (gguf_text("k") + struct.pack("<IIQ", 9, 8, 1 << 60), 1, "ends in its header"),
        (gguf_text("k") + struct.pack("<IIQ", 9, 0, 1 << 62), 1, "ends in its header"),
        (gguf_text("k") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 9, 1, "nested"),
        (gguf_text("k") + struct.pack("<IQ", 8, 1 << 63), 1, "ends in its header"),
        (2 * (gguf_text("k") + struct.pack("<IB", 0, 1)), 2, "twice"),
        (b"", 1 << 40, "entries of metadata"),
        (gguf_text("general.alignment") + struct.pack("<II", 4, 0), 1, "alignment"),
        (gguf_text("general.alignment") + struct.pack("<II", 4, 33), 1, "alignment"),
        (gguf_text("general.alignment") + struct.pack("<If", 6, float("nan")), 1, "alignment"),
    ],
)
def test_forged_gguf_metadata_is_refused(tmp_path: Path, keys: bytes, count: int, reason: str):
    path = tmp_path / "a.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, count)
    path.write_bytes(head + keys + info([64]) + b"\x00" * 4096)
    assert reason in refusal(path)


def test_other_versions_of_gguf_are_named(tmp_path: Path):
    path = tmp_path / "a.gguf"
    for version, reason in ((1, "version 1"), (9, "version 9"), (3 << 24, "big-endian")):
        assert reason in refusal(write_gguf(path, LLAMA, GGUF, version=version))


def test_a_child_reads_the_file(tmp_path: Path):
    path = write_gguf(tmp_path / "ä.gguf", LLAMA, GGUF)

    def call(content: bytes) -> ChildAnswer:
        child = ChildCall(MODULE, memory_bytes=1 << 30)
        return child.run(content, longest_s=60, most_bytes=1 << 20)

    assert ask_weights(path, None, call) == read_weights(path)
    path.write_bytes(b"GGUF")
    with pytest.raises(StudioError, match="cut off"):
        ask_weights(path, None, call)


def test_a_child_without_an_answer_is_a_sentence(tmp_path: Path):
    path = write_gguf(tmp_path / "a.gguf", LLAMA, GGUF)
    ends = {
        "takes too long": ChildAnswer(is_late=True),
        "more memory": ChildAnswer(exit_code=-9),
        "needs more": ChildAnswer(b"\x93garbage", 0),
    }
    for reason, end in ends.items():
        with pytest.raises(StudioError, match=reason):
            ask_weights(path, None, lambda _content, end=end: end)
    with pytest.raises(StudioError, match="does not exist"):
        ask_weights(tmp_path / "no", None, lambda _content: ChildAnswer())


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
