"""What Vulkan lists, from a stand-in of its loader and from the real one where there is one."""

import ctypes

import pytest

from gpu_studio.hardware import vulkan as module
from gpu_studio.hardware.vulkan import vulkan_devices


class FakeVulkan:
    """A card on the bus, and a software device without a slot."""

    def __init__(self, status=0):
        self.status, self.open_instances = status, 0

    def vkCreateInstance(self, wanted, _allocator, instance):
        instance._obj.value = 1
        self.open_instances += self.status == 0
        assert wanted._obj.application.contents.api_version == (1 << 22) | (1 << 12)
        return self.status

    def vkEnumeratePhysicalDevices(self, _instance, count, handles):
        count._obj.value = 2
        handles[0], handles[1] = 11, 12
        return 0

    def vkGetPhysicalDeviceProperties2(self, handle, properties):
        found = properties._obj
        identity = module._Id.from_address(found.next)
        pci = module._Pci.from_address(identity.next)
        if handle.value == 11:
            found.name, found.vendor, found.device, found.type = b"RTX 3060", 0x10DE, 0x2504, 2
            pci.domain, pci.bus, pci.device, pci.function = 0, 1, 0, 0
        else:
            found.name, found.vendor, found.device, found.type = b"llvmpipe", 0x10005, 0, 4
        identity.uuid[0] = handle.value

    def vkDestroyInstance(self, _instance, _allocator):
        self.open_instances -= 1


def test_the_devices_come_in_vulkans_order():
    library = FakeVulkan()
    card, software = vulkan_devices(library)
    assert (card.name, card.vendor_id, card.device_id) == ("RTX 3060", 0x10DE, 0x2504)
    assert (card.pci_bus_id, card.uuid[:4]) == ("00000000:01:00.0", "0b00")
    assert (software.is_software, software.pci_bus_id) == (True, None)
    assert library.open_instances == 0


def test_without_a_driver_there_is_none():
    assert vulkan_devices(FakeVulkan(status=-9)) == []


SIZES_AND_PLACES = [  # of vulkan_core.h, compiled for 64 bits
    (module._Application, 48, "api_version", 44),
    (module._Instance, 64, "extensions", 56),
    (module._Pci, 32, "function", 28),
    (module._Id, 64, "luid", 48),
    (module._Properties, 1320, "name", 36),
]


@pytest.mark.parametrize(("structure", "size_bytes", "field", "place"), SIZES_AND_PLACES)
def test_structures_are_laid_out_as_vulkan_has_them(structure, size_bytes, field, place):
    assert ctypes.sizeof(structure) == size_bytes
    assert getattr(structure, field).offset == place
