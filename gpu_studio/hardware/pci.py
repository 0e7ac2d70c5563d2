"""The graphics cards that the system sees: of any vendor, and without any driver."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_VENDORS = {
    0x10DE: "NVIDIA",
    0x1002: "AMD",
    0x8086: "Intel",
    0x1A03: "ASPEED",
    0x102B: "Matrox",
    0x15AD: "VMware",
    0x1234: "QEMU",
    0x1AF4: "Virtio",
    0x1B36: "Red Hat",
    0x1414: "Microsoft",
}
SYSFS = Path("/sys/bus/pci/devices")
_BUS_ID = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?", re.IGNORECASE)
_DISPLAY_CLASS = 0x03  # PCI Code and ID Assignment Specification: display controller
_NAME_LISTS = ("/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids", "/var/lib/pciutils/pci.ids")
_ADAPTERS_KEY = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"


class DisplayAdapter(msgspec.Struct, frozen=True, kw_only=True):
    """One graphics card on the bus; ``is_asleep`` if the system has switched it off.

    ``kernel_driver`` is its driver on Linux: ``nvidia``, ``nouveau``, ``vfio-pci``.
    """

    vendor_id: int
    device_id: int
    name: str
    pci_bus_id: str | None = None
    is_asleep: bool = False
    kernel_driver: str | None = None


def normal_bus_id(text: str | None) -> str | None:
    """Return a PCI address in nvidia-smi's format, ``00000000:01:00.0``; None if there is none."""
    match = _BUS_ID.fullmatch(text or "")
    if match is None:
        return None
    domain, bus, slot, function = match.groups()
    return f"{int(domain, 16):08X}:{bus}:{slot}.{function or 0}".upper()


def display_adapters() -> list[DisplayAdapter]:
    """Return the graphics cards of this PC; empty if the system does not list them."""
    if sys.platform == "win32":
        import winreg

        adapters = adapters_in_registry(winreg)
    else:
        adapters = adapters_in_sysfs()
    return adapters


def adapters_in_sysfs(
    root: Path = SYSFS, name_lists: Iterable[str] = _NAME_LISTS
) -> list[DisplayAdapter]:
    """Return the graphics cards that Linux lists; this wakes no card."""
    adapters = []
    try:
        folders = sorted(root.iterdir())
    except OSError:
        return []
    for folder in folders:
        device_class = _hexadecimal(folder / "class")
        vendor, device = _hexadecimal(folder / "vendor"), _hexadecimal(folder / "device")
        if device_class is None or vendor is None or device is None:
            continue
        if device_class >> 16 != _DISPLAY_CLASS:
            continue
        adapters.append(
            DisplayAdapter(
                vendor_id=vendor,
                device_id=device,
                name=adapter_name(vendor, device, _listed_name(vendor, device, name_lists)),
                pci_bus_id=normal_bus_id(folder.name),
                is_asleep=_is_suspended(folder),
                kernel_driver=_driver_of(folder),
            )
        )
    return adapters


def is_asleep(pci_bus_id: str, root: Path = SYSFS) -> bool:
    """Return whether Linux has switched a card off to save power; this does not wake it."""
    domain, _, rest = pci_bus_id.lower().partition(":")
    return _is_suspended(root / f"{int(domain, 16):04x}:{rest}")


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


def adapter_name(vendor_id: int, device_id: int, listed: str | None) -> str:
    """Return a name that starts with the vendor: ``AMD Radeon RX 6600``, ``Intel graphics``."""
    vendor = _VENDORS.get(vendor_id, f"PCI {vendor_id:04x}")
    if not listed:
        return f"{vendor} graphics ({vendor_id:04x}:{device_id:04x})"
    listed = plain_text(listed)
    # "GP108 [GeForce GT 1030]": the chip, and in brackets the product.
    if listed.endswith("]") and "[" in listed:
        listed = listed[listed.rindex("[") + 1 : -1]
    return listed if listed.upper().startswith(vendor.upper()) else f"{vendor} {listed}"


def _listed_name(vendor_id: int, device_id: int, name_lists: Iterable[str]) -> str | None:
    """Look up a card in the list of pciutils, which most distributions install."""
    vendor_line, device_line = f"{vendor_id:04x}  ", f"\t{device_id:04x}  "
    for path in name_lists:
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        in_vendor = False
        for line in lines:
            if line.startswith(vendor_line):
                in_vendor = True
            elif in_vendor and line.startswith(device_line):
                return line[len(device_line) :].strip()
            elif in_vendor and line and line[0] not in "\t#":
                break
    return None


def _is_suspended(folder: Path) -> bool:
    return _text(folder / "power" / "runtime_status") in ("suspended", "suspending")


def _driver_of(folder: Path) -> str | None:
    try:
        return plain_text((folder / "driver").readlink().name)
    except OSError:  # the card has no driver
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _hexadecimal(path: Path) -> int | None:
    try:
        return int(_text(path), 16)
    except ValueError:
        return None


def _id_after(hardware_id: str, marker: str) -> int | None:
    try:
        return int(hardware_id.split(marker, 1)[1][:4], 16)
    except (IndexError, ValueError):
        return None
