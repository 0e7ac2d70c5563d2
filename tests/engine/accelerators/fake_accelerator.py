"""An accelerator of a maker that does not exist: a program that answers requests on its card.

PyTorch lets Python stand in for a kind of device; the numbers of its tensors lie in RAM. That
cannot be undone in a process, so this is one of its own.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.core.protocol import decode_request, encode
from gpu_studio.engine import device
from gpu_studio.engine.accelerators.cpu import Cpu
from gpu_studio.engine.dispatcher import Dispatcher

if TYPE_CHECKING:
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


class FakeTensor(torch.Tensor):
    """A tensor on the card, with its numbers beside it."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers: torch.Tensor) -> FakeTensor:
        created = torch._C._acc.create_empty_tensor(numbers.shape, numbers.dtype)
        created.__class__ = cls
        return created

    def __init__(self, numbers: torch.Tensor) -> None:
        self.numbers = numbers


def compute(operation: Any, *args: Any, **options: Any) -> Any:
    """Do on the numbers in RAM what PyTorch asks the card to do."""
    of_card = [one for one in _pytree.tree_leaves((args, options)) if isinstance(one, FakeTensor)]
    args, options = _pytree.tree_map(_in_ram, (args, options))
    if operation is torch.ops.aten._copy_from.default:
        return args[1].copy_(args[0])
    known = {id(one.numbers): one for one in of_card}

    def on_card(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return known[id(value)] if id(value) in known else FakeTensor(value)

    return _pytree.tree_map(on_card, operation(*args, **options))


def _in_ram(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        return value.numbers
    is_card = isinstance(value, torch.device) and value.type == KIND
    return torch.device("cpu") if is_card else value


def main(lines: list[str]) -> None:
    """Answer requests, one JSON object each, on standard output."""
    _setup_privateuseone_for_python_backend(KIND)
    library = torch.library.Library("_", "IMPL")
    library.fallback(compute, "PrivateUse1")
    device.ACCELERATORS[:] = [FakeAccelerator()]
    for line in lines:
        for event in Dispatcher().run(decode_request(line.encode()), threading.Event()):
            sys.stdout.write(encode(event).decode())


if __name__ == "__main__":
    main(sys.argv[1:])
