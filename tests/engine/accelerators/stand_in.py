"""A Radeon or an Arc that Python stands in for: a process answers requests on it.

Everything of this program's `Rocm` and `Xpu` runs for real; what they call of PyTorch answers as a
ROCm or XPU build would. Only the first part of the addresses differs: PyTorch does not lend the
names ``cuda`` and ``xpu`` to others.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from types import FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from gpu_studio.core.protocol import decode_request, encode
from gpu_studio.engine import device
from gpu_studio.engine.accelerators.rocm import Rocm
from gpu_studio.engine.accelerators.xpu import Xpu
from gpu_studio.engine.dispatcher import Dispatcher
from tests.engine.accelerators import python_device
from tests.engine.accelerators.python_device import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# rocminfo and PyTorch of a Ryzen with graphics beside a Radeon: the integrated chip comes first.
RADEONS = (
    SimpleNamespace(
        name="AMD Radeon Graphics", gcnArchName="gfx1036", is_integrated=1, major=10, minor=3,
        multi_processor_count=1, total_memory=512 << 20, pci_domain_id=0, pci_bus_id=0x0E,
        pci_device_id=0, clock_rate=2_200_000, memory_clock_rate=2_400_000, memory_bus_width=128,
        uuid="00000000-0000-0000-0000-000000000e00",
    ),
    SimpleNamespace(
        name="AMD Radeon RX 6600", gcnArchName="gfx1032", is_integrated=0, major=10, minor=3,
        multi_processor_count=14, total_memory=8176 << 20, pci_domain_id=0, pci_bus_id=3,
        pci_device_id=0, clock_rate=2_491_000, memory_clock_rate=875_000, memory_bus_width=128,
        uuid="00000000-0000-0000-0000-000000000300",
    ),
)  # fmt: skip
ARC = SimpleNamespace(
    name="Intel(R) Arc(TM) A380 Graphics", uuid="8680a556-0500-0000-0300-000000000000",
    device_id=0x56A5, total_memory=5934 << 20, last_level_cache_size=4 << 20, has_fp64=False,
    memory_bus_width=64, gpu_eu_count=128, is_integrated_gpu=False,
)  # fmt: skip
# The counters that each allocator has, with their meaning here.
_INTEL_COUNTERS = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")


class Event:
    """An event of a stream whose work is done at once."""

    def __init__(self, enable_timing: bool = False) -> None:
        self._at_s = 0.0

    def record(self, stream: object = None) -> None:
        self._at_s = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""

    def elapsed_time(self, end: Event) -> float:
        return (end._at_s - self._at_s) * 1e3


class Stream:
    """A stream beside another one whose work is done at once."""

    def __init__(self, device: object = None) -> None:
        """Do nothing: there is only one."""

    def synchronize(self) -> None:
        """Return at once."""


class Functions:
    """What `torch.cuda` and `torch.xpu` have in common, for the cards of this program."""

    Event = Event
    Stream = Stream
    OutOfMemoryError = torch.OutOfMemoryError

    def __init__(self, cards: tuple[SimpleNamespace, ...]) -> None:
        self._cards = cards

    def is_available(self) -> bool:
        return True

    def init(self) -> None:
        """Do nothing: there is no driver."""

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing: the numbers come from the CPU's generator."""

    def device_count(self) -> int:
        return len(self._cards)

    def current_device(self) -> int:
        return 0

    def set_device(self, device: object) -> None:
        """Do nothing: all numbers lie in the same RAM."""

    def device(self, device: object) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def get_device_properties(self, device: Any = 0) -> SimpleNamespace:
        index = device if isinstance(device, int) else torch.device(device).index
        return self._cards[index or 0]

    def get_device_name(self, device: Any = 0) -> str:
        return str(self.get_device_properties(device).name)

    def get_arch_list(self) -> list[str]:
        return ["gfx1030", "gfx10-3-generic", "gfx1100"]

    def synchronize(self, device: object = None) -> None:
        """Return at once: the work is done."""

    def stream(self, stream: Stream) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def current_stream(self, device: object = None) -> None:
        """Return no stream: there is only one."""

    def mem_get_info(self, device: object = None) -> tuple[int, int]:
        return MEMORY.total_bytes - MEMORY.reserved_bytes, MEMORY.total_bytes

    def memory_allocated(self, device: object = None) -> int:
        return MEMORY.allocated_bytes

    def memory_reserved(self, device: object = None) -> int:
        return MEMORY.reserved_bytes

    def max_memory_allocated(self, device: object = None) -> int:
        return MEMORY.peak_bytes

    def reset_peak_memory_stats(self, device: object = None) -> None:
        MEMORY.peak_bytes = MEMORY.allocated_bytes

    def memory_stats(self, device: object = None) -> dict[str, int]:
        now = (MEMORY.allocated_bytes, MEMORY.reserved_bytes, *2 * (MEMORY.allocated_bytes,))
        counts = dict(zip(_INTEL_COUNTERS, now, strict=True))
        stats = {f"{name}.all.current": count for name, count in counts.items()}
        return {**stats, "allocated_bytes.all.peak": MEMORY.peak_bytes}

    def memory_snapshot(self) -> list[dict[str, Any]]:
        return MEMORY.segments()

    def empty_cache(self) -> None:
        MEMORY.cached.clear()

    def get_per_process_memory_fraction(self, device: object = None) -> float:
        return MEMORY.share

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16, torch.float32]

    def set_per_process_memory_fraction(self, share: float, device: object = None) -> None:
        MEMORY.share = share


class CudaFunctions(Functions):
    """`torch.cuda` of a ROCm build; its allocator is the one of CUDA, with all its counters."""

    def _sleep(self, cycles: int) -> None:
        """Return at once: nothing queues up."""

    def memory_stats(self, device: object = None) -> dict[str, int]:
        inactive = sum(-size_bytes % (2 << 20) for size_bytes in MEMORY.pieces.values())
        others = {
            "inactive_split_bytes.all.current": inactive,
            "num_alloc_retries": 0,
            "num_ooms": 0,
            "segment.all.current": len(MEMORY.pieces) + len(MEMORY.cached),
        }
        return {**super().memory_stats(device), **others}


class Radeon(Rocm):
    """`Rocm` under a name that PyTorch lends."""

    kind = "amd"
    build: str | None = "7.2.26015"

    def has_context(self, device: torch.device) -> bool:
        return True


class Arc(Xpu):
    """`Xpu` under a name that PyTorch lends."""

    kind = "intel"
    build: str | None = "20250301"


def stand_in(maker: str) -> None:
    """Make this process one with a card of a maker, ``amd`` or ``intel``."""
    functions: Functions
    if maker == "amd":
        functions = CudaFunctions(RADEONS)
        _answer_in_place_of(torch.cuda, functions)
        _answer_in_place_of(torch.cuda.memory, functions)
        torch.version.cuda, torch.version.hip = None, Radeon.build
        device.ACCELERATORS[:] = [Radeon()]
        # Only builds for cards have it.
        torch._C._scatter = lambda tensor, *_: (tensor,)
        MEMORY.error = "HIP out of memory. Tried to allocate {mib:.2f} MiB."
    else:
        functions = Functions((ARC,))
        _answer_in_place_of(torch.xpu, functions)
        _answer_in_place_of(torch.xpu.memory, functions)
        torch.version.xpu = Arc.build
        _refuse_cuda()
        device.ACCELERATORS[:] = [Arc()]
        MEMORY.error = "XPU out of memory. Tried to allocate {mib:.2f} MiB."
    kind = device.accelerator().kind
    python_device.set_up(kind, functions, is_without_float64=maker == "intel")
    _lend_what_is_not_for_python(kind)
    # The function of the same name hides the module.
    sys.modules["torch.nn.parallel.data_parallel"]._get_available_device_type = lambda: kind


def _answer_in_place_of(module: ModuleType, functions: Functions) -> None:
    for name in dir(functions):
        if not name.startswith("__") and name != "_cards":
            setattr(module, name, getattr(functions, name))


def _lend_what_is_not_for_python(kind: str) -> None:
    """Let the CPU's generator and usual memory take the place of a card's and of pinned memory.

    Both need a backend in C++.
    """
    generator = torch.Generator

    class Generator:
        def __new__(cls, device: Any = "cpu") -> Any:
            return generator("cpu" if torch.device(device).type == kind else device)

    torch.Generator = Generator
    for name in ("empty", "empty_like"):
        setattr(torch, name, _without_pinned_memory(getattr(torch, name)))
    torch.Tensor.pin_memory = lambda tensor, device=None: tensor.clone()


def _without_pinned_memory(make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def made(*args: Any, pin_memory: bool = False, **options: Any) -> torch.Tensor:
        return make(*args, **options)

    return made


def _refuse_cuda() -> None:
    """Let each function of `torch.cuda` raise if this program or a script asks it."""
    for name, function in list(vars(torch.cuda).items()):
        if isinstance(function, FunctionType):
            setattr(torch.cuda, name, _refused(name, function))


def _refused(name: str, function: FunctionType) -> Callable[..., Any]:
    def ask(*args: Any, **options: Any) -> Any:
        asking = sys._getframe(1).f_globals["__name__"]
        if asking.partition(".")[0] in ("gpu_studio", "__main__"):
            raise AssertionError(f"{asking} asks torch.cuda.{name} on a card of Intel's")
        return function(*args, **options)

    return ask


def answer(lines: Sequence[str]) -> None:
    """Answer requests, one JSON object each, on standard output."""
    for line in lines:
        for event in Dispatcher().run(decode_request(line.encode()), threading.Event()):
            sys.stdout.buffer.write(encode(event))
