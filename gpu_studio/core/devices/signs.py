"""What a system says of its graphics drivers without opening one: the evidence of the findings."""

from __future__ import annotations

import re
from typing import Final

import msgspec

# What runs a program apart from the rest of the PC, in words.
SANDBOXES: Final = {
    "docker": "this Docker container", "podman": "this Podman container",
    "lxc": "this LXC container", "kubernetes": "this Kubernetes pod",
    "apptainer": "this Apptainer container",
    "container": "this container", "flatpak": "this Flatpak", "snap": "this snap",
}  # fmt: skip
# Drivers of the kernel that hold a card for a virtual machine. Every maker may have a variant of
# vfio-pci of its own: Documentation/driver-api/vfio.rst, drivers/vfio/pci.
_LENDERS = frozenset({"pci-stub", "xen-pciback", "uio-pci-generic"})
_OPEN_MODULE = re.compile(r"\bopen\b.*\bkernel module\b", re.IGNORECASE)
_VERSION = re.compile(r"\b\d{3}\.\d+(?:\.\d+)?\b")


class DeviceFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file through which programs use a card: ``/dev/kfd``.

    ``group`` may open it, if another user than root may; it has a number if it has no name here.
    ``is_member``: this user is in that group, even if this program was started before that.
    ``slot`` is the card's, empty if the file is for all.
    """

    name: str
    may_open: bool
    group: str = ""
    is_member: bool = False
    slot: str = ""

    @property
    def words(self) -> str:
        """The file with who may open it: ``/dev/kfd (closed to you; group render)``."""
        group = f"; group {self.group}" if self.group else ""
        return self.name if self.may_open else f"{self.name} (closed to you{group})"


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of a Linux system.

    ``sandbox`` is a key of `SANDBOXES`, empty on the PC itself. ``files`` are the device files that
    are there, ``modules`` the graphics drivers in the running kernel, ``installed`` those that this
    kernel could load, None if that is not known. ``release`` is the kernel's, ``options`` are what
    it was started with that keeps such drivers away. ``nvidia_module`` is the first line of
    /proc/driver/nvidia/version. ``has_level_zero``: the part of Intel's driver that computes is in
    one of the usual folders. ``kernel_log`` are the kernel's complaints about its graphics drivers;
    empty also where this user may not read them.
    """

    sandbox: str = ""
    files: tuple[DeviceFile, ...] = ()
    modules: tuple[str, ...] = ()
    installed: tuple[str, ...] | None = None
    options: tuple[str, ...] = ()
    release: str = ""
    nvidia_module: str = ""
    has_level_zero: bool | None = None
    kernel_log: tuple[str, ...] = ()

    @property
    def is_open_module(self) -> bool | None:
        """Whether NVIDIA's open kernel module runs; None if none of NVIDIA's is known to."""
        return bool(_OPEN_MODULE.search(self.nvidia_module)) if self.nvidia_module else None

    @property
    def nvidia_version(self) -> str:
        """The version of NVIDIA's kernel module; empty if unknown."""
        found = _VERSION.search(self.nvidia_module)
        return found[0] if found else ""

    def files_at(self, beginning: str, slot: str | None = None) -> list[DeviceFile]:
        """Return the device files whose name begins so, of one card if a slot is given."""
        return [
            file
            for file in self.files
            if file.name.startswith(beginning) and slot in (None, file.slot)
        ]


def lender_of(kernel_driver: str | None) -> str:
    """Return the driver that holds a card for a virtual machine; empty for any other driver."""
    name = (kernel_driver or "").replace("_", "-")
    return kernel_driver or "" if name.endswith("vfio-pci") or name in _LENDERS else ""
