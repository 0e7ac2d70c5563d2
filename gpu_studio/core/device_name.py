"""The names of devices, as PyTorch has them: ``cpu``, ``cuda:0``, ``xpu:1``."""

from __future__ import annotations

import re
from dataclasses import dataclass

CPU = "cpu"
_ADDRESS = re.compile(r"([a-z]+)(?::(\d{1,4}))?")


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device's name in its parts; the index is None where PyTorch would choose the device.

    Attributes:
        kind: PyTorch's word for what makes up the device: ``cpu``, ``cuda``, ``xpu``.
    """

    kind: str
    index: int | None = None

    @classmethod
    def parse(cls, address: str) -> DeviceName:
        """Return the parts of an address; raise `ValueError` for any other text."""
        match = _ADDRESS.fullmatch(address)
        if match is None:
            message = f"“{address}” does not name a device"
            raise ValueError(message)
        kind, index = match.groups()
        return cls(kind, None if index is None else int(index))

    @property
    def is_cpu(self) -> bool:
        return self.kind == CPU

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}:{self.index}"


def torch_module(address: str) -> str:
    """Return what PyTorch calls the functions for a device: ``torch.cuda``, ``torch.xpu``."""
    return f"torch.{DeviceName.parse(address).kind}"


def wait_line(address: str) -> str:
    """Return the line of a script that waits for a device; empty for the CPU."""
    return "" if is_cpu(address) else f'{torch_module(address)}.synchronize("{address}")\n'


def is_cpu(address: str | None) -> bool:
    """Return whether an address names the CPU; None, a device without an address, does not."""
    return address == CPU
