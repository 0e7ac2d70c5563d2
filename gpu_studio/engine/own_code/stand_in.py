"""`torch.cuda` and ``.cuda()`` meet the device being timed while a user's code runs.

On the CPU's side, a script finds one "card" there, which is the CPU: what it asks of
`torch.cuda` (a name, an amount of memory, a wait, a stream) is answered for the CPU. On a card's
side it finds PyTorch's own functions. They are replaced once; the engine's own calls, outside a
user's code, always reach the originals.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psutil
import torch

from gpu_studio.core.device_name import is_cpu

if TYPE_CHECKING:
    from collections.abc import Callable


class DeviceWord(str):
    """A device as a script likes it: a text, which also has what a `torch.device` has."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """``cpu`` or ``cuda``."""
        return str(self).partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]  # no script looks for letters in it
        """The number of the card; None for the CPU."""
        number = str(self).partition(":")[2]
        return int(number) if number else None

    def __eq__(self, other: object) -> bool:
        """Return whether another text or device is this one; ``cuda`` is the card of now."""
        return str(other) in (str(self), self.type)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class CodesTurn:
    """Whose turn it is; None outside a user's code.

    An object, since it costs ten times as long to set an attribute of a class.
    """

    __slots__ = ("device",)

    def __init__(self) -> None:
        self.device: torch.device | None = None


TURN = CodesTurn()


def _nothing(*_: object, **__: object) -> None:
    """Do nothing: there is nothing to do on a CPU."""


class CpuMoment:
    """A moment on the CPU, as `torch.cuda.Event` is one on a card."""

    def __init__(self, *_: object, **__: object) -> None:
        self._at_s = 0.0

    def record(self, *_: object) -> None:
        """Take this moment."""
        self._at_s = time.perf_counter()

    synchronize = wait = _nothing

    def query(self) -> bool:
        """Return True."""
        return True

    def elapsed_time(self, end: CpuMoment) -> float:
        """Return the milliseconds up to another moment."""
        return (end._at_s - self._at_s) * 1e3


class _Stream(contextlib.nullcontext[None]):
    """A stream of the CPU, which does one thing after the other."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    synchronize = wait_stream = wait_event = record_event = _nothing


def _properties(*_: object) -> SimpleNamespace:
    return SimpleNamespace(
        name="CPU", total_memory=psutil.virtual_memory().total, major=0, minor=0,
        multi_processor_count=torch.get_num_threads(),
    )  # fmt: skip


def _memory(*_: object) -> tuple[int, int]:
    memory = psutil.virtual_memory()
    return memory.available, memory.total


_INSTEAD: dict[str, Callable[..., Any]] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "get_device_name": lambda *_: "CPU",
    "get_device_properties": _properties,
    "get_device_capability": lambda *_: (0, 0),
    "get_arch_list": list,
    "mem_get_info": _memory,
    "memory_summary": lambda *_, **__: "",
    "memory_stats": lambda *_: {},
    "is_bf16_supported": lambda *_, **__: True,
    "current_stream": _Stream,
    "default_stream": _Stream,
    "stream": _Stream,
    "device": _Stream,
    "utilization": lambda *_: 0,
    **dict.fromkeys(
        ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
         "memory_cached", "max_memory_cached"), lambda *_: 0,
    ),
    **dict.fromkeys(
        ("init", "synchronize", "empty_cache", "set_device", "ipc_collect", "manual_seed",
         "manual_seed_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
         "set_per_process_memory_fraction"), _nothing,
    ),
    "Event": CpuMoment,
    "Stream": _Stream,
}  # fmt: skip


def _answering(name: str, original: Any) -> Any:
    """Return what answers now: PyTorch itself, the CPU, or the module of another maker's cards."""
    side = TURN.device
    if side is None or side.type == "cuda":
        return original
    instead = _INSTEAD[name]
    return instead if is_cpu(side.type) else getattr(getattr(torch, side.type), name, instead)


def _choosing(name: str, original: Any) -> Any:
    """Return what calls the one of several that answers now."""

    @functools.wraps(original)
    def called(*args: Any, **options: Any) -> Any:
        asking = sys._getframe(1).f_globals.get("__name__", "")
        # PyTorch's own parts, as its compiler, ask for what is really there.
        is_inner = asking == "torch.cuda" or asking.startswith("torch._")
        return (original if is_inner else _answering(name, original))(*args, **options)

    return called


def _chosen_class(name: str, original: Any) -> Any:
    """As `_choosing`, of a class: what PyTorch derives from it or asks `isinstance` goes on."""

    class Meta(type(original)):  # type: ignore[misc]
        def __call__(cls, *args: Any, **options: Any) -> Any:
            made = _answering(name, original) if cls is Chosen else super().__call__
            return made(*args, **options)

        def __instancecheck__(cls, it: object) -> bool:
            return isinstance(it, original) if cls is Chosen else type.__instancecheck__(cls, it)

    class Chosen(original, metaclass=Meta):  # type: ignore[misc]
        pass

    Chosen.__name__ = original.__name__
    return Chosen


def _to_side(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def cuda(tensor: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        side = TURN.device
        if side is None:
            return original(tensor, *args, **options)
        return tensor.to(side, non_blocking=bool(options.get("non_blocking", False)))

    return cuda


def _first_kind(original: Callable[[], str | None]) -> Callable[[], str | None]:
    def kind() -> str | None:
        side = TURN.device
        return original() if side is None else None if is_cpu(side.type) else side.type

    return kind


def _indices(original: Callable[[], list[int]]) -> Callable[[], list[int]]:
    def indices() -> list[int]:
        side = TURN.device
        return original() if side is None or side.index is None else [side.index]

    return indices


@functools.cache
def install() -> None:
    """Replace PyTorch's functions in this process; does nothing the second time."""
    for name in _INSTEAD:
        original = getattr(torch.cuda, name, None)
        if original is not None:
            choose = _chosen_class if isinstance(original, type) else _choosing
            setattr(torch.cuda, name, choose(name, original))
    torch.Tensor.cuda = _to_side(torch.Tensor.cuda)  # type: ignore[method-assign]
    module = sys.modules[torch.nn.DataParallel.__module__]
    for name, change in (
        ("_get_available_device_type", _first_kind), ("_get_all_device_indices", _indices),
    ):  # fmt: skip
        if hasattr(module, name):
            setattr(module, name, change(getattr(module, name)))
