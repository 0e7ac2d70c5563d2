"""A checked case: a workload's size, dtype, device, options and mode."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.benchmark.refusal import device_refusal, options_refusal
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.race_messages import RaceParameters  # noqa: TC001  # msgspec reads it
from gpu_studio.core.messages.run_messages import Limit
from gpu_studio.core.packed_frame import PackedFrame  # noqa: TC001  # msgspec reads it
from gpu_studio.core.texts import listed
from gpu_studio.engine.device import accelerator_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpu_studio.core.messages.run_messages import WorkloadDescription

CACHES = ("hot", "cold")
TF32 = "tf32"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The complete description of a call; made by `make_case`.

    ``options`` has all options of the workload, with the defaults filled in. With ``transfers``,
    the call includes the copies to the device and back. ``cache`` is here because a workload may
    want to mention it; the run overwrites the cache, not the workload. ``race`` and ``photo``
    (`Showing`) are for pictures.
    """

    device: torch.device
    size: int
    dtype: torch.dtype = torch.float32
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    cache: str = "hot"
    transfers: bool = False
    race: RaceParameters | None = None
    photo: PackedFrame | None = None

    @property
    def address(self) -> str:
        """The device's address: ``cpu`` or ``cuda:1``."""
        return str(self.device)

    @property
    def dtype_name(self) -> str:
        """The dtype's name without the module: ``float32``."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def item_bytes(self) -> int:
        """Bytes per number."""
        return self.dtype.itemsize

    @property
    def is_on_card(self) -> bool:
        """Whether the device is a card."""
        return not is_cpu(self.device.type)

    def crossing(self, operands_bytes: int) -> int:
        """Return the bytes of operands that cross the PCIe link in each call: all or none."""
        return operands_bytes if self.transfers and self.is_on_card else 0

    def at(self, size: int) -> Case:
        """Return the same case at another size."""
        return msgspec.structs.replace(self, size=size)

    def on(self, device: torch.device) -> Case:
        """Return the same case on another device."""
        return msgspec.structs.replace(self, device=device)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The work and memory of one call.

    ``operations`` counts floating-point operations. ``bytes_moved`` counts the bytes that the
    operations read and write. ``throughput_work`` is the work of one call in the unit of the
    workload's throughput. ``memory_bytes`` is the device's memory at the peak; ``host_bytes`` is
    the additional CPU memory if the device is a card. ``link_bytes`` cross the PCIe link in the
    busier direction. ``longest_kernel`` is the
    largest share of this work in a single kernel; it is 0 for copies, which run no kernel.
    """

    operations: float
    bytes_moved: float
    throughput_work: float
    memory_bytes: int
    host_bytes: int = 0
    link_bytes: float = 0.0
    longest_kernel: float = 1.0

    @property
    def amounts(self) -> dict[Limit, float]:
        """What each limit holds back."""
        return {
            Limit.ARITHMETIC: self.operations,
            Limit.MEMORY: self.bytes_moved,
            Limit.LINK: self.link_bytes,
        }


def make_case(
    description: WorkloadDescription,
    device: torch.device,
    size: int,
    dtype: str = "float32",
    *,
    options: Mapping[str, str] | None = None,
    cache: str = "hot",
    transfers: bool = False,
    race: RaceParameters | None = None,
    photo: PackedFrame | None = None,
) -> Case:
    """Return the case of a request, with its options checked and completed.

    Raises:
        StudioError: an unknown option or value, with the known ones; or a mode that the workload
            refuses, with the reason.
    """
    if cache not in CACHES:
        raise _bad(f"“{cache[:20]}” is not a cache mode: choose {listed(CACHES, 'or')}.")
    if refusal := device_refusal(description, str(device)):
        raise _bad(refusal)
    for mode, is_wanted in (("cold", cache == "cold"), ("transfers", transfers)):
        refuse_mode(description, mode, is_wanted)
    chosen = options or {}
    if refusal := options_refusal(description, chosen):
        raise _bad(refusal)
    return Case(
        device=device,
        size=size,
        dtype=getattr(torch, dtype),
        options={one.name: chosen.get(one.name, one.values[0]) for one in description.options},
        cache=cache,
        transfers=transfers,
        race=race,
        photo=photo,
    )


def refuse_mode(description: WorkloadDescription, mode: str, is_wanted: bool = True) -> None:
    """Raise `StudioError` if a mode is wanted that the workload refuses."""
    if is_wanted and mode in description.refuses:
        raise _bad(description.refuses[mode])


def refuse_threads(case: Case) -> None:
    """Raise `StudioError` for a number of threads that this PC or a card does not have."""
    threads = case.race.threads if case.race else None
    if threads is None:
        return
    if case.is_on_card:
        raise _bad("A number of threads is only for the CPU.")
    most = max(os.cpu_count() or 1, torch.get_num_threads())
    if threads > most:
        raise _bad(f"{threads} threads are more than this CPU runs at once: choose 1 to {most}.")


@contextlib.contextmanager
def cpu_threads(threads: int | None) -> Iterator[None]:
    """Let PyTorch use this many threads meanwhile; None changes nothing."""
    before = torch.get_num_threads()
    if threads is None or threads == before:
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def product_dtype(case: Case) -> str:
    """Return the dtype in which PyTorch multiplies a case's matrices: its dtype, or ``tf32``.

    TF32 replaces float32 on cards of compute capability 8.0 and higher, if PyTorch may use it.
    """
    if case.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32 and has_tf32(case):
        return TF32
    return case.dtype_name


def dtype_eps(name: str) -> float:
    """Return the distance from 1 to the next number of a dtype; for TF32, that of the factors."""
    if name == TF32:
        return 2.0**-10
    return float(torch.finfo(getattr(torch, name)).eps)


def has_tf32(case: Case) -> bool:
    """Return whether the case's device can compute in TF32."""
    return accelerator_of(case.device).has_tf32(case.device)


def _bad(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)
