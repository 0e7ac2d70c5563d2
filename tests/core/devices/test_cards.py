import itertools
import json
from collections import Counter

import pytest

from gpu_studio.core.devices.adapters import adapter_lines, card_of, usual_adapters
from gpu_studio.core.devices.devices import Device, with_cards
from gpu_studio.core.devices.gpu_chips import (
    gpu_chip,
    product_name,
)
from gpu_studio.core.devices.link import link_bytes_per_s
from gpu_studio.core.devices.peaks import cores_per_multiprocessor
from gpu_studio.core.messages.engine_messages import Adapter
from gpu_studio.core.resources import read_resource, resource_path

TABLE = json.loads(resource_path("cards.json").read_text(encoding="utf-8"))


def test_no_device_id_is_of_two_chips():
    ranges = [
        tuple(int(end, 16) for end in text.split("-"))
        for chip in TABLE["chips"]
        for text in chip["device_ids"]
    ]
    assert all(first <= last for first, last in ranges)
    for (_, last), (first, _) in itertools.pairwise(sorted(ranges)):
        assert last < first


def test_the_table_is_of_one_piece_and_names_its_sources():
    capabilities = {chip["compute_capability"] for chip in TABLE["chips"]}
    for card in TABLE["cards"]:
        assert set(card["compute_capability"]) <= capabilities | {"12.0"}, card["name"]
    with_peaks = {one for one in capabilities if cores_per_multiprocessor(one)}
    assert capabilities - with_peaks <= {"2.0", "2.1"}
    assert set(TABLE["sources"]) == set(TABLE) - {"about", "sources"}


@pytest.mark.parametrize(
    ("maker", "device_id", "target"),
    [("AMD", 0x73FF, "gfx1032"), ("AMD", 0x67DF, "gfx803"), ("AMD", 0x687F, "gfx900"),
     ("AMD", 0x740F, "gfx90a"), ("Intel", 0x56A5, "dg2"), ("Intel", 0xE20B, "bmg"),
     ("Intel", 0x9A49, "tgl"), ("Intel", 0x7D55, "mtl"), ("Intel", 0xB080, "ptl"),
     ("AMD", 0xE20B, None), ("AMD", 0xFFFF, None), ("Intel", None, None)],
)  # fmt: skip
def test_a_device_id_names_the_chip_of_its_maker(maker, device_id, target):
    chip = gpu_chip(maker, device_id)
    assert (chip.target if chip else None) == target


def test_every_device_id_belongs_to_one_chip_of_its_maker():
    uses = Counter(
        (chip["maker"], device_id)
        for chip in read_resource("gpu_chips.json", dict)["chips"]
        for ends in (text.split("-") for text in chip.get("device_ids", ()))
        for device_id in range(int(ends[0], 16), int(ends[-1], 16) + 1)
    )
    assert len(uses) > 700
    assert max(uses.values()) == 1


@pytest.mark.parametrize(
    ("vendor_id", "device_id", "revision", "name"),
    [
        (0x1002, 0x73FF, 0xC7, "Radeon RX 6600"),
        (0x1002, 0x73FF, 0xC1, "Radeon RX 6600 XT"),
        (0x1002, 0x73FF, None, "Radeon RX 6600/6600 XT/6600M"),
        (0x1002, 0x163F, None, "Custom GPU 0405"),  # all its revisions have one name
        (0x8086, 0x56A5, 0x05, "Arc A380"),
        (0x10DE, 0x2504, None, "GeForce RTX 3060 Lite Hash Rate"),
        (0x10DE, 0x2F18, None, "GeForce RTX 5070 Ti Laptop GPU"),  # as its driver says
        (0x1AF4, 0x1050, None, "Virtio GPU"),
        (0x1002, 0xFFFF, None, ""),
    ],
)
def test_a_card_has_the_name_under_which_it_is_sold(vendor_id, device_id, revision, name):
    assert product_name(vendor_id, device_id, revision) == name


def test_a_name_of_many_cards_comes_with_the_chip():
    def shown(name: str, chip: str | None) -> str:
        return Device(kind="cuda", name=name, chip=chip).short_name

    assert shown("AMD Radeon(TM) Graphics", "Phoenix") == "Radeon Graphics (Phoenix)"
    assert shown("Intel(R) Graphics", "Arrow Lake-S") == "Intel Graphics (Arrow Lake-S)"
    assert shown("Intel(R) Graphics", None) == "Intel Graphics"
    assert shown("AMD Radeon RX 6600", "Navi 23") == "Radeon RX 6600"


@pytest.mark.parametrize(
    ("known", "present", "colors"),
    [
        ((), "AB", "AB"),
        ("AB", "BA", "AB"),
        ("AB", "B", "AB"),
        ("AB", "CB", "ABC"),
        ("ABC", "BD", "DBC"),
        ("ABC", "ABCD", "ABCD"),
        ("AA", "A", "A"),
    ],
    ids=["first", "swapped", "one is out", "replaced", "no color is free", "four", "twice"],
)
def test_a_card_keeps_its_color(known: tuple[str, ...] | str, present: str, colors: str) -> None:
    assert with_cards(tuple(known), tuple(present)) == tuple(colors)


@pytest.mark.parametrize(
    ("generation", "width", "gb_per_s"),
    [
        (1, 1, 0.25),
        (3, 4, 3.94),
        (3, 16, 15.75),
        (5, 16, 63.0),
        (6, 16, 121.0),
    ],
)
def test_a_link_carries_what_its_lanes_carry(generation, width, gb_per_s):
    assert link_bytes_per_s(generation, width) == pytest.approx(gb_per_s * 1e9, rel=0.002)


@pytest.mark.parametrize("link", [(None, 16), (3, None), (3, 0), (99, 16)])
def test_an_unknown_link_has_no_limit(link):
    assert link_bytes_per_s(*link) is None


def adapter(address, name="Radeon RX 580", interface="Vulkan", **other):
    numbers = {"vendor_id": 0x1002, "device_id": 0x67DF}
    return Adapter(address=address, name=name, interface=interface, **(numbers | other))


RX580 = adapter("vulkan:0")
BY_DIRECTX = adapter("directx:0", interface="DirectX 12")
SOFTWARE = adapter("vulkan:1", "llvmpipe", vendor_id=0x10005, device_id=0, is_software=True)
BY_GL = adapter("opengl:0", "llvmpipe", "OpenGL", vendor_id=0x10005, device_id=0, is_software=True)


def card(bus):
    return Device(kind="cuda", name="AMD card", maker="AMD", pci_device_id=0x67DF, pci_bus_id=bus)


@pytest.mark.parametrize(
    ("there", "measured"),
    [
        ([BY_DIRECTX, RX580, SOFTWARE], ["vulkan:0"]),
        ([BY_DIRECTX, SOFTWARE], ["directx:0"]),
        ([BY_GL, SOFTWARE], ["vulkan:1"]),
        ([RX580, adapter("vulkan:2")], ["vulkan:0", "vulkan:2"]),
        ([], []),
    ],
)
def test_each_card_is_measured_once_and_software_only_where_there_is_none(there, measured):
    assert [one.address for one in usual_adapters(there)] == measured


def test_equal_cards_are_told_apart_by_their_order():
    both, cards = [RX580, adapter("vulkan:2")], [card("0000:0A:00.0"), card("0000:03:00.0")]
    assert [card_of(one, both, cards).pci_bus_id for one in both] == [
        "0000:03:00.0", "0000:0A:00.0",
    ]  # fmt: skip
    assert card_of(SOFTWARE, [SOFTWARE], cards) is None
    assert card_of(BY_DIRECTX, [BY_DIRECTX], []) is None


def test_software_is_called_so():
    first, second = adapter_lines([RX580, SOFTWARE], [card("0000:03:00.0")])
    assert first == "vulkan:0    Radeon RX 580 by Vulkan, the card in 0000:03:00.0"
    assert "llvmpipe (software) by Vulkan, software that computes on the CPU, no card" in second
