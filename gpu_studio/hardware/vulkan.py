"""The devices that Vulkan lists, in its own order: in a child, since a driver may hang or crash.

vulkan_core.h has the structures. The order is what GGML_VK_VISIBLE_DEVICES counts by, and the
environment changes it, so it is asked with the variables that a program will get.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import msgspec

from gpu_studio.core.switcher.program_start import VulkanDevice
from gpu_studio.core.texts import plain_text
from gpu_studio.hardware.pci import U8, U32, fields, normal_bus_id

_LIBRARIES = {"win32": "vulkan-1.dll", "darwin": "libvulkan.1.dylib"}
_LIBRARY = "libvulkan.so.1"
_API_1_1 = (1 << 22) | (1 << 12)
_MOST_DEVICES = 64
_NOT_FILLED = 0xFFFFFFFF
# VkStructureType.
_INSTANCE, _PROPERTIES, _ID, _PCI = 1, 1000059001, 1000071004, 1000212000
_SOFTWARE = 4  # VK_PHYSICAL_DEVICE_TYPE_CPU
_POINTER = ctypes.c_void_p


class _Application(ctypes.Structure):
    _fields_ = (
        *fields(("kind", U32)), ("next", _POINTER), ("name", _POINTER), *fields(("version", U32)),
        ("engine", _POINTER), *fields(("engine_version api_version", U32)),
    )  # fmt: skip


class _Instance(ctypes.Structure):
    _fields_ = (
        *fields(("kind", U32)), ("next", _POINTER), *fields(("flags", U32)),
        ("application", ctypes.POINTER(_Application)), *fields(("layer_count", U32)),
        ("layers", _POINTER), *fields(("extension_count", U32)), ("extensions", _POINTER),
    )  # fmt: skip


class _Pci(ctypes.Structure):
    _fields_ = (
        *fields(("kind", U32)), ("next", _POINTER), *fields(("domain bus device function", U32)),
    )  # fmt: skip


class _Id(ctypes.Structure):
    _fields_ = (
        *fields(("kind", U32)), ("next", _POINTER), ("uuid", U8 * 16), ("driver_uuid", U8 * 16),
        ("luid", U8 * 8), *fields(("node_mask has_luid", U32)),
    )  # fmt: skip


class _Properties(ctypes.Structure):
    _fields_ = (
        *fields(("kind", U32)), ("next", _POINTER),
        *fields(("api_version driver_version vendor device type", U32)),
        ("name", ctypes.c_char * 256), ("rest", U8 * 1024),
    )  # fmt: skip


def answer(content: bytes) -> bytes:
    """Return the devices as JSON, as a child's answer; see `process.child_call`.

    Args:
        content: variables for the environment, as JSON.
    """
    os.environ.update(msgspec.json.decode(content, type=dict[str, str]))
    return msgspec.json.encode(vulkan_devices())


def vulkan_devices(library: Any = None) -> list[VulkanDevice]:
    """Return the devices in Vulkan's order; none without Vulkan.

    Args:
        library: Vulkan's loader; None loads it.
    """
    try:
        vulkan = library or ctypes.CDLL(_LIBRARIES.get(sys.platform, _LIBRARY))
    except OSError:
        return []
    application = _Application(kind=0, api_version=_API_1_1)
    wanted = _Instance(kind=_INSTANCE, application=ctypes.pointer(application))
    instance = _POINTER()
    if vulkan.vkCreateInstance(ctypes.byref(wanted), None, ctypes.byref(instance)) != 0:
        return []
    count = U32(_MOST_DEVICES)
    handles = (_POINTER * _MOST_DEVICES)()
    vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
    found = [_described(vulkan, _POINTER(handle)) for handle in handles[: count.value]]
    vulkan.vkDestroyInstance(instance, None)
    return found


def _described(vulkan: Any, handle: ctypes.c_void_p) -> VulkanDevice:
    pci = _Pci(kind=_PCI, domain=_NOT_FILLED)
    identity = _Id(kind=_ID, next=ctypes.cast(ctypes.pointer(pci), _POINTER))
    found = _Properties(kind=_PROPERTIES, next=ctypes.cast(ctypes.pointer(identity), _POINTER))
    vulkan.vkGetPhysicalDeviceProperties2(handle, ctypes.byref(found))
    slot = None
    if pci.domain != _NOT_FILLED:
        slot = f"{pci.domain:08x}:{pci.bus:02x}:{pci.device:02x}.{pci.function:x}"
    return VulkanDevice(
        name=plain_text(found.name.decode("utf-8", "replace")),
        vendor_id=found.vendor,
        device_id=found.device,
        uuid=bytes(identity.uuid).hex(),
        pci_bus_id=normal_bus_id(slot),
        is_software=found.type == _SOFTWARE,
    )
