"""Which of PyTorch's cards is which card of the PC, for builds for AMD's and Intel's cards."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.devices.access import (
    Obstacle,
    discrete_first,
    numbered_cards,
    obstacle_of,
    uncounted_cards,
    usable_cards,
)
from gpu_studio.core.devices.devices import Device, Inventory
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.gpu_chips import lists_gfx
from gpu_studio.core.devices.pc_facts import PcFacts
from gpu_studio.core.devices.torch_findings import integrated_first
from gpu_studio.core.messages.engine_messages import EngineDescribed, TorchCard

RADEON = Device(
    kind="cuda", maker="AMD", name="AMD Radeon RX 6600", pci_bus_id="00000000:03:00.0",
    architecture="gfx1032", is_integrated=False,
)  # fmt: skip
RYZEN = Device(
    kind="cuda", maker="AMD", name="AMD Radeon Graphics", pci_bus_id="00000000:0E:00.0",
    architecture="gfx1036", is_integrated=True,
)  # fmt: skip
GEFORCE = Device(
    kind="cuda", maker="NVIDIA", name="NVIDIA GeForce RTX 3060", uuid="GPU-1",
    pci_bus_id="00000000:01:00.0", compute_capability="8.6",
)  # fmt: skip
ARC = Device(
    kind="xpu", maker="Intel", name="Intel Arc A380", pci_bus_id="00000000:03:00.0",
    pci_device_id=0x56A5,
)  # fmt: skip


def torch_card(index: int, card: Device, **changes: object) -> TorchCard:
    usual = TorchCard(
        torch_index=index, name=card.name, kind=card.kind, maker=card.maker,
        pci_bus_id=card.pci_bus_id, architecture=card.architecture,
        is_integrated=bool(card.is_integrated),
    )  # fmt: skip
    return msgspec.structs.replace(usual, **changes)


def engine_with(*cards: TorchCard, **changes: object) -> EngineDescribed:
    first = next((one.torch_index for one in cards if not one.is_integrated), 0)
    usual = EngineDescribed(
        pid=1, torch_version="2.12.0+rocm7.2", hip_build="7.2", cuda_available=True,
        device_count=len(cards), cards=cards, first_card=first,
        arch_list=("gfx10-3-generic", "gfx1100"),
    )  # fmt: skip
    return msgspec.structs.replace(usual, **changes)


def numbers(cards: list[Device], engine: EngineDescribed) -> list[int | None]:
    found = numbered_cards(cards, None, engine.build_kind, engine.cards)
    return [card.torch_index for card in found]


def test_a_card_is_found_by_its_slot_whatever_pytorch_s_order():
    engine = engine_with(torch_card(0, RYZEN), torch_card(1, RADEON))
    assert numbers([GEFORCE, RADEON, RYZEN], engine) == [None, 1, 0]


def test_without_slots_the_chip_or_the_name_decides_and_each_number_is_given_once():
    twin = msgspec.structs.replace(RADEON, pci_bus_id="00000000:06:00.0")
    cards = [torch_card(0, RYZEN, pci_bus_id=None), torch_card(1, RADEON, pci_bus_id=None),
             torch_card(2, RADEON, pci_bus_id=None)]  # fmt: skip
    assert numbers([twin, RADEON, RYZEN], engine_with(*cards)) == [2, 1, 0]
    named = "Intel(R) Arc(TM) A380 Graphics"
    arc = torch_card(0, ARC, name=named, pci_bus_id=None, pci_device_id=0x56A5)
    intel = engine_with(arc, hip_build=None, torch_version="2.13.0+xpu", accelerator="xpu")
    assert numbers([GEFORCE, ARC], intel) == [None, 0]


def test_the_engine_begins_with_the_card_outside_the_processor_and_says_so():
    engine = engine_with(torch_card(0, RYZEN), torch_card(1, RADEON))
    assert usable_cards(engine) == ["cuda:1", "cuda:0"]
    assert discrete_first([RYZEN, RADEON]) == [RADEON, RYZEN]
    cpu = Device(kind="cpu", name="Ryzen 7 5800X")
    inventory = Inventory(devices=(cpu, RYZEN, RADEON))
    (finding,) = integrated_first(PcFacts(inventory, engine, "Linux", "x86_64"))
    assert "cuda:1, the AMD Radeon RX 6600" in finding.sentence
    assert finding.command == "export HIP_VISIBLE_DEVICES=1"
    only_one = engine_with(torch_card(0, RADEON))
    assert not list(integrated_first(PcFacts(inventory, only_one, "Linux", "x86_64")))


def test_a_card_that_only_pytorch_knows_is_a_card_too():
    engine = engine_with(torch_card(0, RADEON))
    (card,) = uncounted_cards([GEFORCE], engine)
    assert (card.name, card.address) == ("AMD Radeon RX 6600", "cuda:0")
    numbered = numbered_cards([GEFORCE, RADEON], None, engine.build_kind, engine.cards)
    assert not uncounted_cards(numbered, engine)


@pytest.mark.parametrize(
    ("chip", "is_listed"),
    [("gfx1032", True), ("gfx1100", True), ("gfx1010", False), ("gfx1201", False)],
)
def test_a_build_has_code_for_a_chip_or_for_its_generic_one(chip, is_listed):
    assert lists_gfx(("gfx10-3-generic", "gfx1100"), chip) is is_listed
    card = msgspec.structs.replace(RADEON, architecture=chip, torch_index=0)
    engine = engine_with(torch_card(0, card))
    assert (obstacle_of(card, engine) is None) is is_listed
    if not is_listed:
        assert obstacle_of(card, engine) is Obstacle.NO_CODE
        # HSA_OVERRIDE_GFX_VERSION lets it pass for another one.
        passing = engine_with(torch_card(0, card, architecture="gfx1030"))
        assert obstacle_of(card, passing) is None


def test_a_usable_card_is_said_to_be_and_that_nobody_tested_it():
    engine = engine_with(torch_card(0, RYZEN), torch_card(1, RADEON))
    inventory = Inventory(devices=(Device(kind="cpu", name="Ryzen"), RADEON, RYZEN))
    findings = find(inventory, engine, system="Linux", machine="x86_64")
    assert [finding.code for finding in findings] == ["integrated_first", "not_tested", "ok", "ok"]
    untested = findings[1]
    assert "not tested on this kind of card yet" in untested.sentence
