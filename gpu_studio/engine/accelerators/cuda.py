"""NVIDIA's cards, through `torch.cuda`; `rocm` has what differs on AMD's, which have its names."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import torch

from gpu_studio.core.devices.finding import continued
from gpu_studio.core.error_table import error_table
from gpu_studio.core.errors.reader import cuda_codes_of
from gpu_studio.core.failure import first_line
from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.texts import plain_text
from gpu_studio.core.wheels import advice_for
from gpu_studio.engine.accelerators.accelerator import CardAccelerator

_BFLOAT16_PRODUCTS_FROM, _TF32_FROM = (7, 0), (8, 0)
# torch.cuda._sleep counts clock cycles; every card's clock is below this.
_FASTEST_CLOCK_HZ = 3.5e9
_HEAD_START_S = 0.5e-3
_START_ERROR = re.compile(r"\bError (?P<code>\d+): (?P<words>[^\n]+)")
# The driver's library as this process has it: on Linux, its file's name has its version.
_LOADED_LIBRARY = re.compile(r"(/\S*/libcuda\.so[\d.]*)(?: \(deleted\))?$", re.MULTILINE)
_LOADED_FILES = Path("/proc/self/maps")


class Cuda(CardAccelerator):
    """See `accelerator.Accelerator`."""

    kind = "cuda"
    maker = "NVIDIA"
    platform = "CUDA"
    convolution_library = "cuDNN"

    @property
    def _torch(self) -> Any:
        return torch.cuda

    @property
    def build(self) -> str | None:
        return torch.version.cuda

    @property
    def process_group_backends(self) -> tuple[str, ...]:
        """Best first: nccl is not on Windows."""
        return ("nccl", "gloo") if torch.distributed.is_nccl_available() else ("gloo",)

    def explain(self, text: str) -> str:
        return explain_unavailable(text, os.environ.get("CUDA_VISIBLE_DEVICES"))

    def start_code(self, text: str) -> int | None:
        return start_code(text)

    def driver_library(self) -> str:
        return loaded_library()

    def arch_list(self) -> tuple[str, ...]:
        return tuple(torch.cuda.get_arch_list())

    def uuid(self, device: torch.device) -> str | None:
        """Return the UUID in NVML's format."""
        return f"GPU-{torch.cuda.get_device_properties(device).uuid}"

    def card(self, index: int) -> TorchCard:
        properties: Any = torch.cuda.get_device_properties(index)
        uuid = getattr(properties, "uuid", None)
        return TorchCard(
            torch_index=index,
            name=self.name(torch.device("cuda", index)),
            kind=self.kind,
            is_integrated=bool(getattr(properties, "is_integrated", False)),
            uuid=None if uuid is None else f"GPU-{uuid}",
            pci_bus_id=slot_of(properties),
            compute_capability=f"{properties.major}.{properties.minor}",
            multiprocessors=properties.multi_processor_count,
            memory_total_bytes=properties.total_memory,
            l2_cache_bytes=getattr(properties, "L2_cache_size", None) or None,
            memory_bus_width_bits=getattr(properties, "memory_bus_width", None) or None,
            sm_clock_max_mhz=megahertz(getattr(properties, "clock_rate", None)),
            memory_clock_max_mhz=megahertz(getattr(properties, "memory_clock_rate", None)),
        )

    def capability(self, device: torch.device) -> tuple[int, int] | None:
        return torch.cuda.get_device_capability(device)

    def architecture(self, device: torch.device) -> str:
        major, minor = torch.cuda.get_device_capability(device)
        return f"compute capability {major}.{minor}"

    def advice(self, device: torch.device) -> str:
        try:
            return advice_for(torch.cuda.get_device_capability(device))
        except MissingResourceError:
            return "You need a different build of PyTorch."

    def refuses_bfloat16_products(self, device: torch.device) -> str:
        """Before compute capability 7.0, cuBLAS raises CUBLAS_STATUS_NOT_SUPPORTED.

        A P100 (6.0) does, a V100 (7.0) computes (pytorch/pytorch issues 57773 and 124996).
        """
        if torch.cuda.get_device_capability(device) >= _BFLOAT16_PRODUCTS_FROM:
            return ""
        return (
            f"The {self.name(device)} ({self.architecture(device)}) cannot multiply matrices in "
            "bfloat16: cuBLAS refuses it before compute capability 7.0. Choose float32 or float16."
        )

    def has_tf32(self, device: torch.device) -> bool:
        return torch.cuda.get_device_capability(device) >= _TF32_FROM

    def idle(self, device: torch.device, seconds: float) -> None:
        """Let a card's stream idle for at least this long, and at least 0.5 ms."""
        self._sleep(device, seconds, _FASTEST_CLOCK_HZ)

    def _sleep(self, device: torch.device, seconds: float, clock_hz: float) -> None:
        with torch.cuda.device(device):
            torch.cuda._sleep(int((seconds + _HEAD_START_S) * clock_hz))

    def has_context(self, device: torch.device) -> bool:
        if not torch.cuda.is_initialized():
            return False
        return bool(torch._C._cuda_hasPrimaryContext(device.index))  # type: ignore[attr-defined]

    def free_and_total(self, device: torch.device) -> tuple[int | None, int]:
        return torch.cuda.mem_get_info(device)

    def segments(self) -> list[dict[str, Any]]:
        ask: Any = torch.cuda.memory_snapshot
        if "include_traces" in inspect.signature(ask).parameters:
            return list(ask(include_traces=False))
        return list(ask())


def explain_unavailable(text: str, visible_devices: str | None) -> str:
    """Return why CUDA cannot be used, from the error text of its start.

    Args:
        text: the error text of ``torch.cuda.init()``.
        visible_devices: the value of CUDA_VISIBLE_DEVICES.
    """
    version, cuda = torch.__version__, torch.version.cuda
    if "not compiled with CUDA" in text or cuda is None:
        return f"This PyTorch ({version}) is built without CUDA: it can only use the CPU."
    if "Found no NVIDIA driver" in text:
        return "PyTorch finds no NVIDIA driver on this PC."
    if "too old" in text:
        return (
            f"The NVIDIA driver is too old for this PyTorch, which is built for CUDA {cuda}: "
            "install a newer driver."
        )
    if "No CUDA GPUs are available" in text:
        if visible_devices is not None:
            return f"CUDA_VISIBLE_DEVICES is “{visible_devices}”, which hides every card."
        return "The NVIDIA driver is running, but it sees no card."
    code = start_code(text)
    kind = error_table().start_kind(code)
    if kind is not None:
        meaning = continued(kind.headline).rstrip(".")
        return f"CUDA could not start: {meaning} (error {code})."
    other = _START_ERROR.search(text)
    if other is not None:
        words = other["words"].strip().rstrip(".")[:200]
        return f"CUDA could not start: error {other['code']}, {words}."
    reason = first_line(text, 200).rstrip(".") or "no reason given"
    return f"CUDA could not start: {reason}."


def start_code(text: str) -> int | None:
    """Return the number of CUDA's error in the text of a failed start, by itself or by its words.

    None for what is not in the table of these errors.
    """
    named = _START_ERROR.search(text)
    numbers = [int(named["code"])] if named is not None else []
    codes = (*numbers, *cuda_codes_of(text))
    return next((one for one in codes if error_table().start_kind(one) is not None), None)


def loaded_library(loaded_files: Path = _LOADED_FILES) -> str:
    """Return the path of the driver's library in this process; empty if it is not known."""
    try:
        found = _LOADED_LIBRARY.search(loaded_files.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return plain_text(found[1]) if found else ""


def slot_of(properties: Any) -> str | None:
    """Return the slot in NVML's format; PyTorch 2.8 and newer report it."""
    if not hasattr(properties, "pci_bus_id"):
        return None
    return (
        f"{properties.pci_domain_id:08X}:{properties.pci_bus_id:02X}"
        f":{properties.pci_device_id:02X}.0"
    )


def megahertz(kilohertz: int | None) -> float | None:
    """Return a clock of PyTorch's in MHz; None if it is not reported."""
    return kilohertz / 1000 if kilohertz else None
