from __future__ import annotations

import pytest
import torch

from gpu_studio.core.memory.networks import NETWORK_NAMES, known_network
from tests.core.memory.published_networks import gpt_2_small, resnet_18, vit_b_16


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
