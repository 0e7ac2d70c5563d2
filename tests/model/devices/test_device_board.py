"""One row for each device, and one answer to whether PyTorch can use it."""

from __future__ import annotations

import msgspec

from gpu_studio.core.devices.access import Obstacle
from gpu_studio.core.devices.devices import Inventory, number_cards
from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard
from gpu_studio.model.devices.device_board import DeviceRow, device_rows, label_of
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, gt_1030_card, two_cards

OTHER_ARCHITECTURES = ("sm_75", "sm_90")
GT_1030 = TorchCard(
    torch_index=0, name="NVIDIA GeForce GT 1030", uuid=gt_1030_card().uuid, compute_capability="6.1"
)


def numbered(inventory: Inventory, visible: str | None = None) -> Inventory:
    cards = number_cards(list(inventory.cards), visible)
    return msgspec.structs.replace(inventory, devices=(inventory.cpu, *cards))


def card_of(engine: EngineDescribed | None, inventory: Inventory | None = None) -> DeviceRow:
    _, card = device_rows(inventory or numbered(gt_1030()), engine)
    return card


def test_a_card_that_pytorch_cannot_use_says_why() -> None:
    card = card_of(described())
    assert (card.address, card.obstacle) == (None, Obstacle.NO_CUDA)
    assert "without CUDA" in card.reason
    card = card_of(described_with_cuda(), numbered(gt_1030(), ""))
    assert (card.address, card.obstacle) == (None, Obstacle.HIDDEN)
    assert "CUDA_VISIBLE_DEVICES" in card.reason
    _, first, second = device_rows(numbered(two_cards()), described_with_cuda())
    assert (first.obstacle, second.obstacle) == (None, Obstacle.NOT_LISTED)
    assert "not list" in second.reason


def test_a_card_without_code_has_its_number_but_no_address() -> None:
    card = card_of(described_with_cuda(arch_list=OTHER_ARCHITECTURES))
    assert (card.address, card.number, card.obstacle) == (None, "cuda:0", Obstacle.NO_CODE)
    assert "no code for your GT 1030 (6.1)" in card.reason
    assert card_of(described_with_cuda(arch_list=())).address == "cuda:0", "not told"


def test_an_unreadable_card_says_what_the_system_says_of_it() -> None:
    lost = gt_1030_card(unreadable="The card has fallen off the bus.", unreadable_code="lost")
    inventory = msgspec.structs.replace(gt_1030(), devices=(gt_1030().cpu, lost))
    card = card_of(described(), inventory)
    assert (card.obstacle, card.reason) == (Obstacle.UNREADABLE, "The card has fallen off the bus.")


def test_cards_that_only_the_engine_knows_are_rows_too() -> None:
    engine = described_with_cuda(device_count=2, cards=(GT_1030,), arch_list=("sm_61", "sm_86"))
    _, card, other = device_rows(cpu_only(), engine)
    assert (card.identity, card.label, card.address) == (GT_1030.uuid, "GT 1030", "cuda:0")
    assert (other.identity, other.label, other.address) == ("cuda:1", "cuda:1", "cuda:1")
    assert (card.device, other.device) == (None, None)
    assert card_of(engine).identity == card.identity, "the sensors know it now"
    _, card, _ = device_rows(None, msgspec.structs.replace(engine, arch_list=OTHER_ARCHITECTURES))
    assert card.obstacle is Obstacle.NO_CODE


def test_cards_of_one_name_are_told_apart() -> None:
    inventory = two_cards()
    first, second = inventory.cards
    twins = numbered(
        msgspec.structs.replace(
            inventory,
            devices=(inventory.cpu, first, msgspec.structs.replace(second, name=first.name)),
        )
    )
    rows = device_rows(twins, None)
    assert [row.label for row in rows] == ["CPU", "GT 1030 (cuda:0)", "GT 1030 (cuda:1)"]
    assert label_of("cuda:1", rows) == "GT 1030 (cuda:1)"
