from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch

from gpu_studio.core.devices.peaks import known_capabilities
from gpu_studio.core.devices.published_builds import table_differences
from gpu_studio.core.maker_builds import serves
from gpu_studio.core.wheel_table import load_table
from gpu_studio.engine import device as properties
from gpu_studio.engine.accelerators.cuda import Cuda
from gpu_studio.engine.device import torch_card

GT_1030 = {
    "name": "NVIDIA GeForce GT 1030", "major": 6, "minor": 1, "multi_processor_count": 3,
    "total_memory": 2092957696,
}  # fmt: skip
HAS_TABLE = hasattr(torch.cuda, "PYTORCH_RELEASES_CODE_CC")


@pytest.fixture
def card_with(monkeypatch):
    def make_card(**facts):
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(**facts)
        )
        return torch_card(0)

    return make_card


def test_a_card_is_reported_as_an_old_pytorch_can(card_with):
    card = card_with(**GT_1030)
    assert (card.compute_capability, card.multiprocessors) == ("6.1", 3)
    assert (card.uuid, card.pci_bus_id, card.l2_cache_bytes, card.sm_clock_max_mhz) == (None,) * 4


def test_a_card_is_reported_as_a_new_pytorch_can(card_with):
    card = card_with(
        **GT_1030, uuid="11111111-2222", pci_domain_id=0, pci_bus_id=0x0B, pci_device_id=0,
        L2_cache_size=524288, clock_rate=1468000, memory_clock_rate=3004000, memory_bus_width=64,
    )  # fmt: skip
    assert card.uuid == "GPU-11111111-2222"
    assert card.pci_bus_id == "00000000:0B:00.0"
    assert (card.sm_clock_max_mhz, card.memory_clock_max_mhz) == (1468.0, 3004.0)
    assert (card.l2_cache_bytes, card.memory_bus_width_bits) == (524288, 64)


def test_a_card_that_pytorch_cannot_describe_keeps_its_number(monkeypatch):
    def fail(_index):
        raise UnicodeDecodeError("utf-8", b"\xf8", 0, 1, "invalid start byte")

    monkeypatch.setattr(torch.cuda, "get_device_properties", fail)
    assert torch_card(1) == properties.TorchCard(torch_index=1, name="NVIDIA card")


@pytest.mark.skipif(not HAS_TABLE, reason="a PyTorch before 2.11 has no table of its own")
def test_the_program_s_rules_and_table_are_those_of_pytorch():
    codes = sorted({code for key in torch.cuda.DEVICE_REQUIREMENT for code in (key,)})
    devices = [major * 10 + minor for major, minor in known_capabilities()]
    for code, device in itertools.product(codes, devices):
        theirs = torch.cuda._code_compatible_with_device(device, code)
        ours = serves([f"sm_{code}"], (device // 10, device % 10))
        assert ours == theirs, f"sm_{code} on {device}"
    assert not table_differences(
        load_table(), Cuda().own_table(), torch.__version__, "linux-x86_64"
    )


def test_a_pytorch_without_a_table_has_none(monkeypatch):
    monkeypatch.delattr(torch.cuda, "PYTORCH_RELEASES_CODE_CC", raising=False)
    assert Cuda().own_table() == {}
