"""The names of cards by their PCI ids."""

from __future__ import annotations

import pytest

from gpu_studio.core.devices.product_names import product_name


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
