"""A graphics card on the bus, of any vendor; Windows lists them in its registry.

Also the fields of the structures of drivers and of Windows, several of one type in a row.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import msgspec

from gpu_studio.core.texts import plain_text

NVIDIA_VENDOR_ID = 0x10DE
_VENDORS = {
    NVIDIA_VENDOR_ID: "NVIDIA",
    0x1002: "AMD",
    0x8086: "Intel",
    0x1A03: "ASPEED",
    0x102B: "Matrox",
    0x15AD: "VMware",
    0x1234: "QEMU",
    0x1AF4: "Virtio",
    0x1B36: "Red Hat",
    0x1414: "Microsoft",
    0x80EE: "VirtualBox",
    0x1013: "Cirrus",
    0x5853: "Xen",
    0x19E5: "Huawei",
    0x0014: "Loongson",
    0x1D17: "Zhaoxin",
    0x1ED5: "Moore Threads",
    0x126F: "Silicon Motion",
    0x1106: "VIA",
    0x1039: "SiS",
}
_BUS_ID = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE)
_ADAPTERS_KEY = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"


class DisplayAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """One graphics card; ``is_asleep`` if the system has switched it off.

    ``kernel_driver`` is its driver on Linux: ``nvidia``, ``nouveau``, ``vfio-pci``. There,
    ``folder`` and ``card`` are the folders of its device and of the card itself, of which the
    second is empty without a driver. A card that is on no PCI bus has no ids.
    """

    vendor_id: int
    device_id: int
    name: str
    pci_bus_id: str | None = None
    is_asleep: bool = False
    kernel_driver: str | None = None
    revision: int | None = None
    folder: str = ""
    card: str = ""

    @property
    def slot(self) -> str:
        """Where it is: its PCI address, or the name of its folder; empty if nothing says it."""
        return self.pci_bus_id or self.folder

    @property
    def maker(self) -> str:
        """The maker as it is written on the screen; empty if nothing says it."""
        return vendor_name(self.vendor_id) if self.vendor_id else ""


def normal_bus_id(text: str | None) -> str | None:
    """Return a PCI address in nvidia-smi's format, ``00000000:01:00.0``; None if there is none."""
    match = _BUS_ID.fullmatch(text or "")
    if match is None:
        return None
    domain, bus, slot, function = match.groups()
    return f"{int(domain, 16):08X}:{bus}:{slot}.{function or 0}".upper()


def is_slot(text: str) -> bool:
    """Return whether a text is a PCI address in nvidia-smi's format."""
    return normal_bus_id(text) == text


def adapters_in_registry(winreg: Any) -> list[DisplayAdapter]:
    """Return the graphics cards with a driver entry in Windows; ``winreg`` is the module."""
    adapters: dict[str, DisplayAdapter] = {}
    for number in range(64):
        try:
            path = f"{_ADAPTERS_KEY}\\{number:04d}"
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                description = str(winreg.QueryValueEx(key, "DriverDesc")[0])
                hardware_id = str(winreg.QueryValueEx(key, "MatchingDeviceId")[0]).upper()
        except OSError:
            continue
        vendor, device = _id_after(hardware_id, "VEN_"), _id_after(hardware_id, "DEV_")
        if vendor is None or device is None:  # a remote desktop's adapter is not on a bus
            continue
        # A driver that was installed twice has two entries for one card.
        adapters[hardware_id] = DisplayAdapter(
            vendor_id=vendor, device_id=device, name=adapter_name(vendor, device, description)
        )
    return list(adapters.values())


def vendor_name(vendor_id: int) -> str:
    """Return the name of a vendor on the PCI bus."""
    return _VENDORS.get(vendor_id, f"PCI {vendor_id:04x}")


def adapter_name(vendor_id: int, device_id: int, listed: str | None) -> str:
    """Return a name that starts with the vendor: ``AMD Radeon RX 6600``, ``Intel graphics``."""
    vendor = vendor_name(vendor_id)
    if not listed:
        return f"{vendor} graphics ({vendor_id:04x}:{device_id:04x})"
    listed = plain_text(listed)
    return listed if listed.upper().startswith(vendor.upper()) else f"{vendor} {listed}"


def _id_after(hardware_id: str, marker: str) -> int | None:
    try:
        return int(hardware_id.split(marker, 1)[1][:4], 16)
    except (IndexError, ValueError):
        return None


U8, U32, I32, U64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64


def fields(*rows: tuple[str, type]) -> list[tuple[str, type]]:
    """Return ``_fields_`` of a structure.

    Args:
        rows: the names of fields that follow each other, with spaces between, and their type.
    """
    return [(name, kind) for names, kind in rows for name in names.split()]
