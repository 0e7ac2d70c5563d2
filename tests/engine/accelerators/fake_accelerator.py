"""An accelerator of a maker that does not exist: a program that answers requests on its card.

The numbers of its tensors lie in RAM (`python_device`).
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.core.protocol import decode_request, encode
from gpu_studio.engine import device
from gpu_studio.engine.accelerators.cpu import Cpu
from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.accelerators import python_device

if TYPE_CHECKING:
    import torch

    from gpu_studio.engine.accelerators.accelerator import Feature

KIND = "fake"


class FakeAccelerator(Cpu):
    """One card that computes at once; its allocator counts 1 KiB."""

    kind = KIND
    build: str | None = "1.0"

    def lacks(self, feature: Feature) -> str:
        return f"Fake cards have no {feature}."

    def name(self, device: torch.device) -> str:
        return f"Fake card {device.index}"

    def uuid(self, device: torch.device) -> str | None:
        return f"FAKE-{device.index}"

    def card(self, index: int) -> TorchCard:
        return TorchCard(torch_index=index, name=f"Fake card {index}", kind=KIND)

    def has_context(self, device: torch.device) -> bool:
        return True

    def allocated_bytes(self, device: torch.device) -> int | None:
        return 1024

    def peak_bytes(self, device: torch.device) -> int | None:
        return 4096


def main(lines: list[str]) -> None:
    """Answer requests, one JSON object each, on standard output."""
    python_device.set_up(KIND)
    device.ACCELERATORS[:] = [FakeAccelerator()]
    for line in lines:
        for event in Dispatcher().run(decode_request(line.encode()), threading.Event()):
            sys.stdout.buffer.write(encode(event))


if __name__ == "__main__":
    main(sys.argv[1:])
