"""The names of devices: PyTorch's ``cpu``, ``cuda:0``, ``xpu:1``, and ``attic/cuda:0``.

The last one is a device of another PC, which the user has named. Only the part after the slash is
ever sent there.
"""

from __future__ import annotations

import re

import msgspec

CPU = "cpu"
_SLASH = "/"
_ADDRESS = re.compile(r"(?:([^/]{1,40})/)?([a-z]+)(?::(\d{1,4}))?")


class DeviceName(msgspec.Struct, frozen=True):
    """A device's name in its parts; the index is None where PyTorch would choose the device.

    Attributes:
        kind: PyTorch's word for what makes up the device: ``cpu``, ``cuda``, ``xpu``.
        pc: the name of the PC that has it; empty for this one.
    """

    kind: str
    index: int | None = None
    pc: str = ""

    @classmethod
    def parse(cls, address: str) -> DeviceName:
        """Return the parts of an address; raise `ValueError` for any other text."""
        match = _ADDRESS.fullmatch(address)
        if match is None:
            message = f"“{address}” does not name a device"
            raise ValueError(message)
        pc, kind, index = match.groups()
        return cls(kind, None if index is None else int(index), pc or "")

    @property
    def is_cpu(self) -> bool:
        return self.kind == CPU

    @property
    def there(self) -> str:
        """The name that its own PC has for it: ``cuda:0``."""
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    def __str__(self) -> str:
        return address_at(self.pc, self.there)


def address_at(pc: str, address: str) -> str:
    """Return the name here of what another PC calls ``cuda:0``; the same name if `pc` is empty."""
    return f"{pc}{_SLASH}{address}" if pc else address


def pc_of(address: str) -> str:
    """Return the name of the PC that has a device; empty for this PC."""
    return address.partition(_SLASH)[0] if _SLASH in address else ""


def address_there(address: str) -> str:
    """Return the name that a device's own PC has for it."""
    return address.rpartition(_SLASH)[2]


def torch_module(address: str) -> str:
    """Return what PyTorch calls the functions for a device: ``torch.cuda``, ``torch.xpu``."""
    return f"torch.{DeviceName.parse(address).kind}"


def wait_line(address: str) -> str:
    """Return the line of a script that waits for a device; empty for the CPU."""
    if is_cpu(address):
        return ""
    return f'{torch_module(address)}.synchronize("{address_there(address)}")\n'


def is_cpu(address: str | None) -> bool:
    """Return whether an address names the CPU; None, a device without an address, does not."""
    return address is not None and address_there(address) == CPU


def name_at(pc: str, name: str) -> str:
    """Return a device's name with that of its PC: ``P40 · attic``; the name alone if it is here."""
    return f"{name} · {pc}" if pc else name
