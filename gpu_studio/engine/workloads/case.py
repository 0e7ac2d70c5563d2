"""Which call is meant: a workload's size, dtype, device, options and mode, checked once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.listing import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption

CACHES = ("hot", "cold")
TF32 = "tf32"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One call, completely described; made by `make_case`.

    ``options`` are the workload's own, all of them, the defaults filled in. With ``transfers`` the
    copies to the device and back belong to the call. ``cache`` is told because a workload may
    want to mention it: overwriting the cache is not its business.
    """

    device: torch.device
    size: int
    dtype: torch.dtype = torch.float32
    options: Mapping[str, str] = msgspec.field(default_factory=dict)
    cache: str = "hot"
    transfers: bool = False

    @property
    def address(self) -> str:
        """The device as a person writes it: ``cpu`` or ``cuda:1``."""
        return str(self.device)

    @property
    def dtype_name(self) -> str:
        """The dtype's name without the module's: ``float32``."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def item_bytes(self) -> int:
        """The bytes of one number."""
        return self.dtype.itemsize

    @property
    def is_on_card(self) -> bool:
        """Whether the device is a card."""
        return self.device.type == "cuda"

    def crossing(self, operands_bytes: int) -> int:
        """Return how much of the operands crosses the PCIe link in each call: all or nothing."""
        return operands_bytes if self.transfers and self.is_on_card else 0

    def at(self, size: int) -> Case:
        """Return the same case at another size."""
        return msgspec.structs.replace(self, size=size)

    def on(self, device: torch.device) -> Case:
        """Return the same case on another device."""
        return msgspec.structs.replace(self, device=device)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one call does and takes.

    ``operations`` are floating-point operations, ``bytes_moved`` what is read and written as the
    operations are written; ``throughput_work`` is what one call does in the unit of the workload's
    throughput. ``memory_bytes`` exist on the device at the peak, ``host_bytes`` in the CPU's memory
    beside it where the device is a card. ``link_bytes`` cross the PCIe link, the busier way.
    ``longest_kernel`` is the share of it all that one kernel does: 0 for copies, which are none.
    """

    operations: float
    bytes_moved: float
    throughput_work: float
    memory_bytes: int
    host_bytes: int = 0
    link_bytes: float = 0.0
    longest_kernel: float = 1.0


def make_case(
    description: WorkloadDescription,
    device: torch.device,
    size: int,
    dtype: str = "float32",
    *,
    options: Mapping[str, str] | None = None,
    cache: str = "hot",
    transfers: bool = False,
) -> Case:
    """Return the case of a request, its options checked and completed.

    Raises:
        StudioError: an option or a value that there is not, with those there are; a mode in which
            the workload makes no sense, with its reason.
    """
    if cache not in CACHES:
        raise _bad(f"“{cache[:20]}” is no mode of the cache: choose {listed(CACHES, 'or')}.")
    if device.type not in description.device_kinds:
        raise _bad(
            f"{description.name} does not run on {device}: it is for "
            f"{listed(_KINDS[kind] for kind in description.device_kinds)}."
        )
    for mode, is_wanted in (("cold", cache == "cold"), ("transfers", transfers)):
        refuse_mode(description, mode, is_wanted)
    return Case(
        device=device,
        size=size,
        dtype=getattr(torch, dtype),
        options=_completed(description, options or {}),
        cache=cache,
        transfers=transfers,
    )


def refuse_mode(description: WorkloadDescription, mode: str, is_wanted: bool = True) -> None:
    """Raise `StudioError` where a mode is wanted that a workload refuses."""
    if is_wanted and mode in description.refuses:
        raise _bad(description.refuses[mode])


def product_dtype(case: Case) -> str:
    """Return what PyTorch multiplies matrices of a case in: its dtype, or ``tf32``.

    TF32 is for float32 on cards from compute capability 8.0 on, where PyTorch is allowed to use it.
    """
    if case.dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32 and has_tf32(case):
        return TF32
    return case.dtype_name


def dtype_eps(name: str) -> float:
    """Return the distance from 1 to the next number of a dtype, or of the factors in TF32."""
    if name == TF32:
        return 2.0**-10
    return float(torch.finfo(getattr(torch, name)).eps)


def has_tf32(case: Case) -> bool:
    """Return whether the case's device can compute in TF32."""
    return case.is_on_card and torch.cuda.get_device_capability(case.device) >= (8, 0)


_KINDS = {"cpu": "the CPU", "cuda": "NVIDIA cards"}


def _completed(description: WorkloadDescription, chosen: Mapping[str, str]) -> dict[str, str]:
    there_are = {option.name: option for option in description.options}
    for name, value in chosen.items():
        if name not in there_are:
            raise _bad(_unknown_option(description, name))
        _check_value(description, there_are[name], value)
    return {name: chosen.get(name, option.values[0]) for name, option in there_are.items()}


def _check_value(description: WorkloadDescription, option: WorkloadOption, value: str) -> None:
    if value not in option.values:
        raise _bad(
            f"“{value[:20]}” is no value of {description.name}'s option {option.name}: choose "
            f"{listed(option.values, 'or')}."
        )


def _unknown_option(description: WorkloadDescription, name: str) -> str:
    if not description.options:
        return f"{description.name} has no option “{name[:20]}”: it has none at all."
    names = listed((option.name for option in description.options), "or")
    return f"{description.name} has no option “{name[:20]}”: there is {names}."


def _bad(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)
