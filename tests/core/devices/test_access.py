from __future__ import annotations

from gpu_studio.core.devices.access import usable_cards
from gpu_studio.core.messages.engine_messages import TorchCard
from tests.fakes.descriptions import described, described_with_cuda

GT_1030 = TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030", compute_capability="6.1")
RTX_3060 = TorchCard(torch_index=1, name="NVIDIA GeForce RTX 3060", compute_capability="8.6")
UNTOLD = TorchCard(torch_index=0, name="NVIDIA card")


def usable_of(*cards: TorchCard, arch_list: tuple[str, ...] = ("sm_75", "sm_80")) -> list[str]:
    engine = described_with_cuda(device_count=2, cards=cards, arch_list=arch_list)
    return usable_cards(engine)


def test_a_card_without_code_is_left_out() -> None:
    assert usable_of(GT_1030, RTX_3060) == ["cuda:1"]
    assert usable_of(GT_1030, RTX_3060, arch_list=("sm_60", "sm_80")) == ["cuda:0", "cuda:1"]


def test_what_is_not_reported_is_not_held_against_a_card() -> None:
    assert usable_of(UNTOLD, RTX_3060) == ["cuda:0", "cuda:1"]
    assert usable_of() == ["cuda:0", "cuda:1"]
    assert usable_of(GT_1030, RTX_3060, arch_list=()) == ["cuda:0", "cuda:1"]


def test_without_cuda_there_is_none() -> None:
    assert usable_cards(described()) == []
