from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import torch

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.networks import NETWORK_NAMES, known_network, read_network
from tests.core.memory.published_networks import gpt_2_small, resnet_18, vit_b_16

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "built", "parameters"),
    [
        ("ResNet-18", resnet_18, 11_689_512),
        ("GPT-2", gpt_2_small, 124_439_808),
        ("ViT-B/16", vit_b_16, 86_567_656),
    ],
)
def test_a_known_network_has_the_tensors_of_the_real_one(name, built, parameters):
    network = known_network(name)
    with torch.device("meta"):
        assert sorted(network.tensors) == sorted(built())
    assert network.parameters == parameters


def test_llama_has_its_published_size():
    assert known_network("llama 2 7b").parameters == 6_738_415_616
    assert [known_network(name).name for name in NETWORK_NAMES] == list(NETWORK_NAMES)
    assert known_network("7B") is None


def file_of(path: Path, header: bytes, size_bytes: int | None = None) -> Path:
    length = len(header) if size_bytes is None else size_bytes
    path.write_bytes(length.to_bytes(8, "little") + header)
    return path


def test_a_safetensors_file_is_read_by_its_header(tmp_path: Path):
    fields = {
        "__metadata__": {"format": "pt"},
        "a.weight": {"dtype": "F32", "shape": [20, 30], "data_offsets": [0, 2400]},
        "a.bias": {"dtype": "F32", "shape": [20], "data_offsets": [2400, 2480]},
        "scale": {"dtype": "F32", "shape": [], "data_offsets": [2480, 2484]},
        "none": {"dtype": "F32", "shape": [0, 5], "data_offsets": [2484, 2484]},
    }
    network = read_network(file_of(tmp_path / "a.safetensors", json.dumps(fields).encode()))
    assert (network.name, network.tensors) == ("a.safetensors", (600, 20, 1))


@pytest.mark.parametrize(
    ("header", "size_bytes", "reason"),
    [
        (b"PK\x03\x04", None, "a.pt is not a safetensors file."),
        (b"{}", 1 << 60, "a.pt is not a safetensors file."),
        (b"[1]", None, "a.pt is not a safetensors file."),
        (b'{"a": {"shape": [-3, -1]}}', None, "a.pt is not a safetensors file."),
        (b'{"\xff": {"shape": [1]}}', None, "a.pt is not a safetensors file."),
        (b'{"a": {"shape": [1000000, 1000000, 1000]}}', None, "a.pt has too many tensors."),
        (b"{}", None, "a.pt has no tensors."),
    ],
)
def test_another_file_is_refused(tmp_path: Path, header: bytes, size_bytes, reason: str):
    path = file_of(tmp_path / "a.pt", header, size_bytes)
    with pytest.raises(StudioError, match=re.escape(reason)):
        read_network(path)
    with pytest.raises(StudioError, match="Cannot read"):
        read_network(tmp_path)
