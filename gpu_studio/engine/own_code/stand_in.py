"""What a user's code meets in the place of a card's name and of `torch.cuda`.

On the CPU's side, a script finds one "card" there, which is the CPU: what it asks of
`torch.cuda` (a name, an amount of memory, a wait, a stream) is answered for the CPU. On a card's
side it finds PyTorch's own functions. Nothing of PyTorch is replaced.
"""

from __future__ import annotations

import contextlib
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


class Cards:
    """What stands in a script for `torch.cuda`.

    Args:
        device: the side.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        """Return what the cards of a side have: PyTorch's own, or else the CPU's answer."""
        module = None if is_cpu(self._device.type) else getattr(torch, self._device.type, None)
        found = getattr(module, name, None) or _INSTEAD.get(name)
        return getattr(torch.cuda, name) if found is None else found

    def moved(self, value: Any, *_: object, non_blocking: bool = False, **__: object) -> Any:
        """Move a tensor or a model, as its ``cuda()`` does."""
        word, options = str(self._device), {"non_blocking": True} if non_blocking else {}
        return value.to(word, **options)

    def parallel(self, module: torch.nn.Module, *_: object, **__: object) -> torch.nn.Module:
        """Return a model on all cards of a side, which is one."""
        if is_cpu(self._device.type):
            return _OnCpu(module)
        return torch.nn.DataParallel(module, device_ids=[self._device.index or 0])


class _OnCpu(torch.nn.Module):
    """`DataParallel` without a card."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.module(*args, **options)
