"""A kind of device that Python stands in for: the numbers of its tensors lie in RAM.

PyTorch's PrivateUse1 with a Python backend. It cannot be undone in a process, so whoever uses it is
a process of its own.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count, zip_longest
from typing import Any

import numpy as np
import torch
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


def set_up(
    kind: str, backend_module: object | None = None, *, is_without_float64: bool = False
) -> None:
    """Let Python stand in for devices of a kind."""
    _setup_privateuseone_for_python_backend(kind, backend_module)
    compute = _computing_on(kind, is_without_float64=is_without_float64)
    everything, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    everything.fallback(compute, "PrivateUse1")
    for name, operation in _OPERATIONS.items():
        aten.impl(name, partial(compute, operation), "PrivateUse1")
    for name in _composed():
        if name not in _OPERATIONS:
            aten.impl(name, partial(compute, _operation(name)), "PrivateUse1")
    _LIBRARIES.extend((everything, aten))


_LIBRARIES: list[torch.library.Library] = []


def in_order(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor's numbers in RAM, one after the other."""
    return MEMORY.numbers(tensor).reshape(-1).clone()


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
    "unfold", "view.dtype", "_conj", "_neg_view",
)  # fmt: skip


def _root(numbers: torch.Tensor) -> torch.Tensor:
    """Return the nearest numbers to the roots, as a card does; the CPU's may be their neighbors."""
    wide = numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.asarray(np.sqrt(wide.numpy()))).to(numbers.dtype)


_INSTEAD = {
    torch.ops.aten.sqrt.default: lambda numbers: (
        _root(numbers) if numbers.is_floating_point() else numbers.sqrt()
    ),
    torch.ops.aten.sqrt_.default: lambda numbers: numbers.copy_(_root(numbers)),
    # A tensor of the device seems to lie one after the other, its numbers may not.
    torch.ops.aten.view.default: torch.ops.aten.reshape.default,
    torch.ops.aten._unsafe_view.default: torch.ops.aten.reshape.default,
    torch.ops.aten.sqrt.out: lambda numbers, out: out.copy_(_root(numbers)),
}
# A card reads where the CPU's indices point.
_MAY_MIX = {
    getattr(torch.ops.aten, name) for name in ("_copy_from", "index", "_index_put_impl_", "copy_")
}
_MOVES = {
    getattr(torch.ops.aten, name)
    for name in ("_copy_from", "_to_copy", "empty", "empty_strided", "clone", "copy_")
}


def _refuse_mixed(
    operation: Any, on_device: Collection[torch.Tensor], others: list[torch.Tensor]
) -> None:
    """Raise what a card raises if one operand is not on it; numbers without dimensions may be."""
    if getattr(operation, "overloadpacket", operation) in _MAY_MIX or not on_device:
        return
    elsewhere = next((one for one in others if one.dim()), None)
    if elsewhere is not None:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{next(iter(on_device)).device} and {elsewhere.device}!"
        )


def _refuse_float64(operation: Any, on_device: Collection[torch.Tensor]) -> None:
    """Raise what SYCL raises on a chip that can hold numbers of 64 bits, and not work on them."""
    is_move = getattr(operation, "overloadpacket", operation) in _MOVES or operation in _VIEWED
    if not is_move and any(one.dtype in (torch.float64, torch.complex128) for one in on_device):
        raise RuntimeError(f"Required aspect fp64 is not supported on the device ({operation})")


def _with_numbers_as_tensors(operation: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the operands as the operation has them: PyTorch hands over numbers for some."""
    return tuple(
        torch.tensor(one) if kind == "Tensor" and isinstance(one, int) else one
        for kind, one in zip_longest(_kinds(operation)[: len(args)], args)
    )


@cache
def _kinds(operation: Any) -> tuple[str, ...]:
    """Return the kinds of an operation's operands; none if it does not say them."""
    schema = getattr(operation, "_schema", None)
    return () if schema is None else tuple(str(one.type) for one in schema.arguments)


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


def _composed() -> list[str]:
    """Return the operations that PyTorch would do by writing into an empty result, which grows."""
    names = [
        name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutograd")
    ]  # fmt: skip
    return [name for name in names if _makes_new_tensors(name)]


def _makes_new_tensors(name: str) -> bool:
    try:
        schema = _operation(name)._schema
    except AttributeError:
        return False
    takes = [str(one.type) for one in schema.arguments]
    aliases = any(one.alias_info for one in (*schema.arguments, *schema.returns))
    has_place = any(one.name in ("device", "pin_memory") for one in schema.arguments)
    is_made = all(str(one.type) == "Tensor" for one in schema.returns) and bool(schema.returns)
    return "Tensor" in takes and is_made and not aliases and not has_place


_VIEWED = {_operation(name) for name in _VIEWS}


def _changed(change: Callable[[Any], Any], value: Any) -> Any:
    """Return operands or results with each one changed; PyTorch hands over lists and tuples."""
    if isinstance(value, (list, tuple)):
        return type(value)([_changed(change, one) for one in value])
    return change(value)


def _computing_on(kind: str, *, is_without_float64: bool) -> Any:
    def compute(operation: Any, *args: Any, **options: Any) -> Any:
        """Do on the numbers in RAM what PyTorch asks the device to do."""
        known: dict[int, torch.Tensor] = {}
        others: list[torch.Tensor] = []

        def in_ram(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if value.device.type != kind:
                    others.append(value)
                    return value
                numbers = MEMORY.numbers(value)
                known[id(numbers)] = value
                return numbers
            is_card = isinstance(value, torch.device) and value.type == kind
            return torch.device("cpu") if is_card else value

        args = _changed(in_ram, args)
        options = {name: _changed(in_ram, one) for name, one in options.items()}
        _refuse_mixed(operation, known.values(), others)
        args = _with_numbers_as_tensors(operation, args)
        if operation is torch.ops.aten._copy_from.default:
            return args[1].copy_(args[0])
        if is_without_float64:
            _refuse_float64(operation, known.values())

        def back(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return known[id(value)] if id(value) in known else MEMORY.tensor(value)

        return _changed(back, _INSTEAD.get(operation, operation)(*args, **options))

    return compute
