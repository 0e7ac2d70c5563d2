"""Intel's cards, through `torch.xpu`. Its allocator is its own: only what it reports is claimed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch

from gpu_studio.core.failure import first_line
from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.engine.accelerators.accelerator import CardAccelerator

if TYPE_CHECKING:
    from gpu_studio.engine.accelerators.accelerator import Feature

_VENDOR_ID = 0x8086
_UUID_BYTES = 16
_INTEGRATED_SLOT = ":00:02.0"


class Xpu(CardAccelerator):
    """See `accelerator.Accelerator`."""

    kind = "xpu"
    maker = "Intel"
    platform = "XPU"
    convolution_library = "oneDNN"

    @property
    def _torch(self) -> Any:
        return torch.xpu

    @property
    def build(self) -> str | None:
        """Older versions do not have it."""
        version: str | None = getattr(torch.version, "xpu", None)
        return version

    @property
    def process_group_backends(self) -> tuple[str, ...]:
        """Best first: Intel's own, which is on Linux only."""
        ask: Any = getattr(torch.distributed, "is_xccl_available", None)
        return ("xccl", "gloo") if ask is not None and ask() else ("gloo",)

    def explain(self, text: str) -> str:
        return explain_unavailable(text, os.environ.get("ZE_AFFINITY_MASK"))

    def lacks(self, feature: Feature) -> str:
        since = f"and this PyTorch is {torch.__version__}."
        memory: Any = torch.xpu.memory
        match feature:
            case "custom kernels":
                return (
                    "This kernel is written for NVIDIA's compiler (NVRTC). Intel cards need "
                    "another one, which PyTorch does not include."
                )
            case "segments" if not hasattr(memory, "memory_snapshot"):
                return f"PyTorch lists the segments of Intel cards from 2.11 on, {since}"
            case "memory limit" if not hasattr(memory, "set_per_process_memory_fraction"):
                return f"This PyTorch ({torch.__version__}) cannot limit the memory of Intel cards."
            case "head start":
                return (
                    "PyTorch cannot let an Intel card wait, so launching and computing cannot be "
                    "told apart."
                )
            case "DataParallel":
                return (
                    "DataParallel copies the network with CUDA's functions, which Intel cards do "
                    "not have: choose DistributedDataParallel."
                )
            case "CUDA_VISIBLE_DEVICES":
                return (
                    "This variable hides no Intel cards. Theirs is ZE_AFFINITY_MASK, which their "
                    "driver (Level Zero) reads."
                )
            case "convolution switches":
                return (
                    "These switches belong to cuDNN and MIOpen: Intel cards compute convolutions "
                    "with oneDNN, which has none."
                )
            case _:
                return ""

    def uuid(self, device: torch.device) -> str | None:
        """Return the slot, by which the system knows the card."""
        return slot_of(torch.xpu.get_device_properties(device))

    def card(self, index: int) -> TorchCard:
        properties: Any = torch.xpu.get_device_properties(index)
        # Its bus width is that of one channel: 64 bits for a card with 8,192 (torch-xpu-ops#3891).
        return TorchCard(
            torch_index=index,
            name=self.name(torch.device("xpu", index)),
            kind=self.kind,
            maker=self.maker,
            pci_bus_id=slot_of(properties),
            pci_device_id=getattr(properties, "device_id", None),
            is_integrated=_is_integrated(properties),
            memory_total_bytes=properties.total_memory,
            l2_cache_bytes=getattr(properties, "last_level_cache_size", None) or None,
        )

    def is_integrated(self, index: int) -> bool:
        return _is_integrated(torch.xpu.get_device_properties(index))

    def architecture(self, device: torch.device) -> str:
        return "an Intel chip that it was not built for"

    def advice(self, device: torch.device) -> str:
        return "PyTorch's XPU builds are for Arc, Core Ultra and newer chips."

    def refuses_dtype(self, device: torch.device, dtype: str) -> str:
        """Arc A has no arithmetic for float64: SYCL raises “Required aspect fp64”."""
        instead = {"float64": "float32", "complex128": "complex64"}.get(dtype)
        if instead is None or torch.xpu.get_device_properties(device).has_fp64:
            return ""
        return f"The {self.name(device)} has no arithmetic for {dtype}. Choose {instead}."

    def free_and_total(self, device: torch.device) -> tuple[int | None, int]:
        """Older drivers do not report the free memory of some chips."""
        try:
            free_bytes, total_bytes = torch.xpu.mem_get_info(device)
        except RuntimeError:
            return None, int(torch.xpu.get_device_properties(device).total_memory)
        return free_bytes, total_bytes

    def segments(self) -> list[dict[str, Any]]:
        ask: Any = getattr(torch.xpu.memory, "memory_snapshot", list)
        return list(ask())


def explain_unavailable(text: str, affinity_mask: str | None) -> str:
    """Return why an XPU build of PyTorch cannot use a card, from the error text of its start.

    Args:
        text: the error text of ``torch.xpu.init()``; empty if it did not fail.
        affinity_mask: the value of ZE_AFFINITY_MASK, by which Level Zero hides cards.
    """
    if "not compiled with XPU" in text:
        return f"This PyTorch ({torch.__version__}) is built without XPU: it can only use the CPU."
    if affinity_mask is not None:
        return f"ZE_AFFINITY_MASK is “{affinity_mask}”, and PyTorch sees no Intel card."
    if not text or "No XPU devices are available" in text or "device count is zero" in text:
        return "PyTorch sees no Intel card that it can use."
    return f"XPU could not start: {first_line(text, 200).rstrip('.')}."


def slot_of(properties: Any) -> str | None:
    """Return the slot of a card in NVML's format, from its UUID; None if that has none.

    Intel's drivers made it of vendor, chip, revision, domain, bus, device and function:
    8680d50b-2f00-0000-2c00-… is in slot 2c:00.0. Newer ones make a number without a meaning
    (both in intel/torch-xpu-ops, issues 3583 and 3891).
    """
    uuid = _uuid_bytes(getattr(properties, "uuid", None))
    if uuid is None:
        return None
    vendor, chip, domain = (int.from_bytes(uuid[at : at + 2], "little") for at in (0, 2, 6))
    if vendor != _VENDOR_ID or chip != getattr(properties, "device_id", chip):
        return None
    bus, device, function = uuid[8:11]
    return f"{domain:08X}:{bus:02X}:{device:02X}.{function:X}"


def _is_integrated(properties: Any) -> bool:
    """PyTorch reports it from 2.13 on; Intel's integrated chips are always in one slot."""
    reported = getattr(properties, "is_integrated_gpu", None)
    if reported is None:
        return (slot_of(properties) or "").endswith(_INTEGRATED_SLOT)
    return bool(reported)


def _uuid_bytes(value: Any) -> bytes | None:
    """Return the bytes of a UUID: PyTorch has had it as bytes, as numbers and as text."""
    try:
        text = str(value).replace("-", "")
        found = bytes.fromhex(text) if isinstance(value, str) else bytes(value)
    except (TypeError, ValueError):
        try:
            found = bytes.fromhex(str(value).replace("-", ""))
        except ValueError:
            return None
    return found if len(found) == _UUID_BYTES else None
