import pytest

from gpu_studio.core.devices.access import (
    Obstacle,
    capability_of,
    numbered_cards,
    obstacle_of,
    obstacle_words,
    usable_cards,
)
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard
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


@pytest.mark.parametrize(
    ("maker", "kind", "driver", "obstacle"),
    [
        ("AMD", "cuda", "amdgpu", Obstacle.OTHER_BUILD),
        ("Intel", "xpu", "xe", Obstacle.OTHER_BUILD),
        ("ASPEED", "display", "ast", Obstacle.OTHER_BUILD),
        ("NVIDIA", "cuda", "nouveau", Obstacle.OTHER_DRIVER),
        ("NVIDIA", "cuda", "nvidia", Obstacle.HIDDEN),
    ],
)
def test_a_card_of_another_maker_needs_another_build_and_is_not_hidden(
    maker, kind, driver, obstacle
):
    card = Device(kind=kind, maker=maker, name="x", kernel_driver=driver, pci_bus_id="0:1:2.0")
    (numbered,) = numbered_cards([card], "")  # CUDA_VISIBLE_DEVICES hides every card of NVIDIA's
    engine = EngineDescribed(pid=1, torch_version="2.13.0+cu130", cuda_build="13.0")
    assert numbered.torch_index is None
    assert obstacle_of(numbered, engine) is obstacle
    assert obstacle_words(obstacle, numbered, engine)


def test_a_chip_of_amds_is_not_taken_for_nvidias_with_the_same_number():
    # 13c0 is the integrated graphics of a Ryzen, and the GeForce GTX 980.
    ryzen = Device(kind="cuda", maker="AMD", name="Radeon Graphics", pci_device_id=0x13C0)
    geforce = Device(kind="cuda", maker="NVIDIA", name="GTX 980", pci_device_id=0x13C0)
    assert [capability_of(card) for card in (ryzen, geforce)] == [None, (5, 2)]
