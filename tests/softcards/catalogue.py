"""Cards that tests use often: sizes and clocks of the real cards, sensors that are examples."""

from dataclasses import replace

from tests.softcards.cards import Card

GT_1030 = Card(
    "NVIDIA GeForce GT 1030",
    "6.1",
    mib=1996,
    nvml_mib=2048,
    sms=3,
    clock_mhz=1468,
    memory_clock_mhz=3004,
    bus_width_bits=64,
    l2_kib=512,
    # It has no power sensor: the driver tells the limit only.
    sensors={
        "power_mw": None,
        "power_limit_mw": 19000,
        "display_active": 1,
        "pci_device_id": 0x1D0110DE,
    },
)

GTX_1650 = Card(
    "NVIDIA GeForce GTX 1650",
    "7.5",
    mib=3903,
    nvml_mib=4096,
    sms=14,
    clock_mhz=1665,
    memory_clock_mhz=4001,
    bus_width_bits=128,
    l2_kib=1024,
    sensors={
        "power_limit_mw": 75000,
        "max_pcie_width": 16,
        "pcie_width": 16,
        "pci_device_id": 0x1F8210DE,
    },
)

RTX_3060 = Card(
    "NVIDIA GeForce RTX 3060",
    "8.6",
    mib=12044,
    nvml_mib=12288,
    sms=28,
    clock_mhz=1777,
    memory_clock_mhz=7501,
    bus_width_bits=192,
    l2_kib=3072,
    sensors={
        "power_limit_mw": 170000,
        "max_pcie_gen": 4,
        "max_pcie_width": 16,
        "pcie_width": 16,
        "pci_device_id": 0x250310DE,
    },
)

RTX_4090 = Card(
    "NVIDIA GeForce RTX 4090",
    "8.9",
    mib=24111,
    nvml_mib=24564,
    sms=128,
    clock_mhz=2520,
    memory_clock_mhz=10501,
    bus_width_bits=384,
    l2_kib=73728,
    sensors={
        "power_limit_mw": 450000,
        "max_pcie_gen": 4,
        "max_pcie_width": 16,
        "pcie_width": 16,
        "pci_device_id": 0x268410DE,
    },
)

KNOWN = {card.name: card for card in (GT_1030, GTX_1650, RTX_3060, RTX_4090)}

MODERN_1996_MIB = replace(GTX_1650, name="Soft card", mib=1996, nvml_mib=2048)
"""The memory of a GT 1030 on a card that every build of PyTorch has code for."""
