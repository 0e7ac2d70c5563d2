from __future__ import annotations

import msgspec

from gpu_studio.core.devices.devices import Inventory, number_cards
from gpu_studio.model.benchmark.benchmark_devices import device_choices, device_label
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, two_cards


def numbered(inventory: Inventory, visible: str | None = None) -> Inventory:
    cards = number_cards(list(inventory.cards), visible)
    return msgspec.structs.replace(inventory, devices=(inventory.cpu, *cards))


def test_the_cpu_is_there_before_anything_was_found() -> None:
    (choice,) = device_choices(None, None)
    assert (choice.address, choice.label, choice.reason) == ("cpu", "CPU", "")


def test_a_card_waits_for_the_engine() -> None:
    cpu, card = device_choices(numbered(gt_1030()), None)
    assert cpu.name == "AMD Ryzen 7 5700G with Radeon Graphics"
    assert card.address is None
    assert "until the engine" in card.reason


def test_a_usable_card_has_its_address() -> None:
    _, card = device_choices(numbered(gt_1030()), described_with_cuda())
    assert (card.address, card.label, card.reason) == ("cuda:0", "GT 1030", "")


def test_a_card_that_pytorch_cannot_use_says_why() -> None:
    inventory = numbered(gt_1030())
    _, card = device_choices(inventory, described())
    assert (card.address, card.reason) == (None, "This PyTorch was built without CUDA.")
    _, card = device_choices(inventory, described_with_cuda(arch_list=("sm_75", "sm_90")))
    assert (card.address, card.reason) == (None, "This PyTorch has no code for it (6.1).")
    _, card = device_choices(inventory, described_with_cuda(arch_list=()))
    assert card.address == "cuda:0"
    _, card = device_choices(numbered(gt_1030(), ""), described_with_cuda())
    assert card.address is None
    assert "CUDA_VISIBLE_DEVICES" in card.reason


def test_cards_of_one_name_are_told_apart() -> None:
    inventory = two_cards()
    first, second = inventory.cards
    twins = msgspec.structs.replace(
        inventory,
        devices=(inventory.cpu, first, msgspec.structs.replace(second, name=first.name)),
    )
    twins = numbered(twins)
    assert [choice.label for choice in device_choices(twins, None)] == [
        "CPU", "GT 1030 (cuda:0)", "GT 1030 (cuda:1)",
    ]  # fmt: skip
    assert device_label("cuda:1", twins) == "GT 1030 (cuda:1)"


def test_a_label_for_every_address() -> None:
    assert device_label("cpu", None) == device_label("cpu", cpu_only()) == "CPU"
    assert device_label("cuda:0", numbered(gt_1030())) == "GT 1030"
    assert device_label("cuda:3", numbered(gt_1030())) == device_label("cuda:3", None) == "cuda:3"
