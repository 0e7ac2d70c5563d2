"""AMD's and Intel's chips by PCI device id, by target, and by Linux' number of the target."""

from __future__ import annotations

from collections import Counter

import pytest

from gpu_studio.core.devices.gpu_chips import (
    chip_for_target,
    gfx_target,
    gpu_chip,
    product_name,
)
from gpu_studio.core.json_resource import read_resource


@pytest.mark.parametrize(
    ("maker", "device_id", "target"),
    [("AMD", 0x73FF, "gfx1032"), ("AMD", 0x67DF, "gfx803"), ("AMD", 0x687F, "gfx900"),
     ("AMD", 0x747E, "gfx1101"), ("AMD", 0x15BF, "gfx1103"), ("AMD", 0x163F, "gfx1033"),
     ("AMD", 0x6818, "gfx601"), ("AMD", 0x7550, "gfx1201"), ("AMD", 0x1586, "gfx1151"),
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
    ("version", "target"),
    [(100302, "gfx1032"), (110000, "gfx1100"), (110501, "gfx1151"), (120001, "gfx1201"),
     (90010, "gfx90a"), (90012, "gfx90c"), (90402, "gfx942"), (90500, "gfx950"), (80003, "gfx803")],
)  # fmt: skip
def test_linux_number_of_a_target_is_llvms_name_of_it(version, target):
    assert gfx_target(version) == target
    chip = chip_for_target(target)
    assert chip is not None
    assert chip.target == target


@pytest.mark.parametrize(
    ("vendor_id", "device_id", "revision", "name"),
    [
        (0x1002, 0x73FF, 0xC7, "Radeon RX 6600"),
        (0x1002, 0x73FF, 0xC1, "Radeon RX 6600 XT"),
        (0x1002, 0x73FF, None, "Radeon RX 6600/6600 XT/6600M"),
        (0x1002, 0x73FF, 0x01, "Radeon RX 6600/6600 XT/6600M"),
        (0x1002, 0x15BF, 0xC4, "Radeon 780M"),
        (0x1002, 0x163F, None, "Custom GPU 0405"),  # all its revisions have one name
        (0x8086, 0x56A5, 0x05, "Arc A380"),
        (0x10DE, 0x2504, None, "GeForce RTX 3060 Lite Hash Rate"),
        (0x1AF4, 0x1050, None, "Virtio GPU"),
        (0x1002, 0xFFFF, None, ""),
    ],
)
def test_a_card_has_the_name_under_which_it_is_sold(vendor_id, device_id, revision, name):
    assert product_name(vendor_id, device_id, revision) == name
