import pytest

from gpu_studio.core.devices.adapters import adapter_lines, card_of, is_adapter, usual_adapters
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.messages.engine_messages import Adapter


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


@pytest.mark.parametrize(
    ("address", "is_one"),
    [("vulkan:0", True), ("directx:1", True), ("cpu", False), ("cuda:0", False)],
)
def test_an_address_says_whether_it_is_an_adapter(address, is_one):
    assert is_adapter(address) is is_one
