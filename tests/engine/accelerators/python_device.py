"""A kind of device that Python stands in for: the numbers of its tensors lie in RAM.

PyTorch's PrivateUse1 with a Python backend. It cannot be undone in a process, so whoever uses it is
a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

MIB = 1 << 20
_SEGMENT_BYTES = 2 * MIB
# Of a storage that only this file still holds.
_OWN_USES = 1


@dataclass
class Memory:
    """What an allocator would count: a segment of whole 2 MiB for each piece of memory.

    Attributes:
        total_bytes: of the card.
        error: the text of its out-of-memory error, with the requested size.
        share: the part of it that may be reserved.
    """

    total_bytes: int = 2048 * MIB
    error: str = "out of memory. Tried to allocate {mib:.2f} MiB."
    share: float = 1.0
    peak_bytes: int = 0
    cached: list[int] = field(default_factory=list)
    _tensors: dict[int, tuple[torch.UntypedStorage, torch.Tensor]] = field(default_factory=dict)
    _pieces: dict[int, int] = field(default_factory=dict)

    @property
    def pieces(self) -> dict[int, int]:
        """The bytes of each piece of memory that a tensor looks at, by its place."""
        self._sweep()
        return self._pieces

    @property
    def allocated_bytes(self) -> int:
        return sum(self.pieces.values())

    @property
    def reserved_bytes(self) -> int:
        return sum(map(_segment_bytes, self.pieces.values())) + sum(self.cached)

    def tensor(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the device with these numbers; raises when the memory is full."""
        at, size_bytes = numbers.untyped_storage().data_ptr(), numbers.untyped_storage().nbytes()
        if at not in self._pieces:
            self._take(at, size_bytes)
        made: torch.Tensor = torch._C._acc.create_empty_tensor(numbers.shape, numbers.dtype)
        storage = made.untyped_storage()
        self._tensors[storage._cdata] = (storage, numbers)
        self.peak_bytes = max(self.peak_bytes, sum(self._pieces.values()))
        return made

    def numbers(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the numbers of a tensor, which share its memory."""
        return self._tensors[tensor.untyped_storage()._cdata][1]

    def segments(self, device: int = 0) -> list[dict[str, Any]]:
        """Return the segments in the form of ``memory_snapshot``."""
        used = [_segment(device, at, size_bytes) for at, size_bytes in self.pieces.items()]
        places = count(max(self.pieces, default=0) + (1 << 40), 1 << 40)
        return used + [
            _segment(device, at, 0, whole) for at, whole in zip(places, self.cached, strict=False)
        ]

    def _take(self, at: int, size_bytes: int) -> None:
        whole = _segment_bytes(size_bytes)
        self._sweep()
        if whole in self.cached:
            self.cached.remove(whole)
        elif self.reserved_bytes + whole > self.share * self.total_bytes:
            self.cached.clear()
            if self.reserved_bytes + whole > self.share * self.total_bytes:
                raise torch.OutOfMemoryError(self.error.format(mib=size_bytes / MIB))
        self._pieces[at] = size_bytes

    def _sweep(self) -> None:
        """Give back what nobody looks at any more."""
        for key, (storage, _) in list(self._tensors.items()):
            if torch._C._storage_Use_Count(storage._cdata) <= _OWN_USES:
                del self._tensors[key]
        used = {numbers.untyped_storage().data_ptr() for _, numbers in self._tensors.values()}
        for at in self._pieces.keys() - used:
            self.cached.append(_segment_bytes(self._pieces.pop(at)))


def _segment_bytes(size_bytes: int) -> int:
    return -(-max(size_bytes, 1) // _SEGMENT_BYTES) * _SEGMENT_BYTES


def _segment(device: int, at: int, size_bytes: int, whole: int = 0) -> dict[str, Any]:
    whole = whole or _segment_bytes(size_bytes)
    blocks = [
        {"address": at, "size": size_bytes, "state": "active_allocated"},
        {"address": at + size_bytes, "size": whole - size_bytes, "state": "inactive"},
    ]
    return {
        "device": device, "address": at, "total_size": whole, "allocated_size": size_bytes,
        "active_size": size_bytes, "requested_size": size_bytes, "stream": 0,
        "segment_type": "small" if size_bytes <= MIB else "large", "segment_pool_id": (0, 0),
        "is_expandable": False,
        "blocks": [
            {"requested_size": block["size"], "frames": [], **block}
            for block in blocks if block["size"]
        ],
    }  # fmt: skip


MEMORY = Memory()


def set_up(kind: str, backend_module: object | None = None) -> None:
    """Let Python stand in for devices of a kind."""
    _setup_privateuseone_for_python_backend(kind, backend_module)
    compute = _computing_on(kind)
    everything, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    everything.fallback(compute, "PrivateUse1")
    for name, operation in _OPERATIONS.items():
        aten.impl(name, partial(compute, operation), "PrivateUse1")
    _LIBRARIES.extend((everything, aten))


_LIBRARIES: list[torch.library.Library] = []


def _operation(name: str) -> Any:
    function, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, function), overload or "default")


def _convolution_backward(*args: Any) -> Any:
    """Return the gradients; a convolution without bias, like all here, has no size of one."""
    *operands, mask = args
    return torch.ops.aten.convolution_backward(*operands[:3], None, *operands[3:], mask)


# PyTorch would make these views by the strides of the tensor, which are not those of its numbers.
_VIEWS = (
    "transpose.int", "t", "permute", "expand", "select.int", "slice.Tensor", "unsqueeze", "squeeze",
    "squeeze.dim", "squeeze.dims", "split.Tensor", "split_with_sizes", "unbind.int", "diagonal",
    "unfold", "view.dtype",
)  # fmt: skip
# PyTorch leaves convolutions to each kind of device, and makes an empty result for the others,
# which a tensor of Python cannot grow into.
_OPERATIONS = {
    **{name: _operation(name) for name in _VIEWS},
    "convolution_overrideable": torch.ops.aten.convolution.default,
    "convolution_backward_overrideable": _convolution_backward,
    "where.self": torch.ops.aten.where.self,
    "arange": torch.ops.aten.arange.default,
    "arange.start": torch.ops.aten.arange.start,
    "arange.start_step": torch.ops.aten.arange.start_step,
    "mse_loss": torch.ops.aten.mse_loss.default,
    "mse_loss_backward": torch.ops.aten.mse_loss_backward.default,
}


def _computing_on(kind: str) -> Any:
    def is_on_device(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == kind

    def in_ram(value: Any) -> Any:
        if is_on_device(value):
            return MEMORY.numbers(value)
        is_card = isinstance(value, torch.device) and value.type == kind
        return torch.device("cpu") if is_card else value

    def compute(operation: Any, *args: Any, **options: Any) -> Any:
        """Do on the numbers in RAM what PyTorch asks the device to do."""
        leaves = [one for one in _pytree.tree_leaves((args, options)) if is_on_device(one)]
        known = {id(MEMORY.numbers(one)): one for one in leaves}
        args, options = _pytree.tree_map(in_ram, (args, options))
        if operation is torch.ops.aten._copy_from.default:
            return args[1].copy_(args[0])

        def back(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return known[id(value)] if id(value) in known else MEMORY.tensor(value)

        return _pytree.tree_map(back, operation(*args, **options))

    return compute
