"""Addresses, devices and CUDA's state: the only module that asks PyTorch for them."""

from __future__ import annotations

import logging
import os
import re
import threading
import warnings
from functools import lru_cache

import psutil
import torch

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.published_builds import advice_for
from gpu_studio.core.devices.torch_facts import DRIVER_HALVES_DIFFER
from gpu_studio.core.failure import FailureKind, StudioError, first_line
from gpu_studio.core.resources import MissingResourceError

_log = logging.getLogger(__name__)
_BFLOAT16_PRODUCTS_FROM = (7, 0)
_CARD_ADDRESS = re.compile(r"cuda:(\d{1,4})")
# "Unexpected error from cudaGetDeviceCount(). Did you run … Error 804: forward compatibility was …"
_START_ERROR = re.compile(r"\bError (?P<code>\d+): (?P<words>[^\n]+)")
# cudaErrorSystemDriverMismatch and cudaErrorCompatNotSupportedOnDevice of driver_types.h.
_HALVES_DIFFER = frozenset({803, 804})
_CARDS_ASLEEP = (
    "This PC's NVIDIA cards are asleep to save power, and starting CUDA would wake them."
)
_is_cuda_left_alone = threading.Event()


def addresses() -> list[str]:
    """Return the devices: ``cpu``, then ``cuda:0`` and so on. Creates no context."""
    available, _ = cuda_state()
    return ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count() * available))]


def resolve(address: str) -> torch.device:
    """Return the device of an address; starts CUDA for a card, but creates no context.

    Raises:
        StudioError: no such device; the message names the existing devices.
    """
    if is_cpu(address):
        return torch.device("cpu")
    match = _CARD_ADDRESS.fullmatch(address)
    available, reason = cuda_state()
    if match and not available:
        raise StudioError(FailureKind.NO_CUDA, f"There is no {address} here, only cpu. {reason}")
    if not match or int(match[1]) >= torch.cuda.device_count():
        there_are = ", ".join(addresses())
        verb = "are" if "," in there_are else "is"
        shown = address if len(address) <= 20 else address[:17] + "…"
        raise StudioError(
            FailureKind.NO_SUCH_DEVICE, f"There is no {shown} here; there {verb} {there_are}."
        )
    start_cuda()
    return torch.device("cuda", int(match[1]))


def start_cuda() -> None:
    """Start PyTorch's CUDA once; its warnings (an unsupported card) go to the log."""
    if torch.cuda.is_initialized():
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.init()
    for warning in caught:
        _log.warning("CUDA: %s", warning.message)


def leave_cuda_alone(is_wished: bool) -> bool:
    """Stop calling CUDA, or allow it again; return whether CUDA is left alone.

    Every call to CUDA needs ``cuInit``, which wakes sleeping cards. If this process has already
    called CUDA, there is nothing left to protect.
    """
    if is_wished and not _first_state.cache_info().currsize:
        _is_cuda_left_alone.set()
    else:
        _is_cuda_left_alone.clear()
    return _is_cuda_left_alone.is_set()


def cuda_state() -> tuple[bool, str | None]:
    """Return whether CUDA can be used, and if not, a sentence why. Creates no context.

    The state does not change while a process lives, because CUDA reads its environment once. While
    CUDA is left alone, it cannot be used and is not called.
    """
    if _is_cuda_left_alone.is_set():
        return False, _CARDS_ASLEEP
    return _first_state()


@lru_cache(maxsize=1)
def _first_state() -> tuple[bool, str | None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    for warning in caught:
        _log.warning("CUDA: %s", warning.message)
    if available:
        return True, None
    try:
        # This cannot succeed now, and its error says more than is_available does.
        torch.cuda.init()
    except Exception as error:  # AssertionError, RuntimeError: it depends on the build
        text = str(error)
    else:
        text = ""
    return False, explain_unavailable(text, os.environ.get("CUDA_VISIBLE_DEVICES"))


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
    started = _START_ERROR.search(text)
    if started is not None and int(started["code"]) in _HALVES_DIFFER:
        return DRIVER_HALVES_DIFFER
    if "unknown error" in text:
        return (
            "CUDA could not start (the driver gave an unknown error). This is common after the PC "
            "has slept: restart the PC."
        )
    if started is not None:
        words = started["words"].strip().rstrip(".")[:200]
        return f"CUDA could not start: error {started['code']}, {words}."
    reason = first_line(text, 200).rstrip(".") or "no reason given"
    return f"CUDA could not start: {reason}."


def prove_kernels(device: torch.device) -> None:
    """Run one small kernel: the only proof that PyTorch has code for a card.

    Everything else works without code: the card is listed, memory is allocated, copies run.

    Raises:
        StudioError: this build has no code for the card; the message names both.
    """
    try:
        torch.zeros(1, device=device).add_(1)
        synchronize(device)
    except RuntimeError as error:
        if "no kernel image is available" not in str(error):
            raise
        major, minor = torch.cuda.get_device_capability(device)
        message = (
            f"This PyTorch ({torch.__version__}) has no code for the "
            f"{card_name(device)} (compute capability {major}.{minor}), only for "
            f"{', '.join(torch.cuda.get_arch_list())}. {_advice_for((major, minor))}"
        )
        raise StudioError(FailureKind.NO_KERNEL, message) from error


def _advice_for(compute_capability: tuple[int, int]) -> str:
    try:
        return advice_for(compute_capability)
    except MissingResourceError:
        return "You need a different build of PyTorch."


def refuse_bfloat16_products(device: torch.device) -> None:
    """Raise `StudioError` for a card whose cuBLAS has no products in bfloat16.

    Before compute capability 7.0 it raises CUBLAS_STATUS_NOT_SUPPORTED: a P100 (6.0) does, a V100
    (7.0) computes (pytorch/pytorch issues 57773 and 124996).
    """
    if device.type != "cuda":
        return
    capability = torch.cuda.get_device_capability(device)
    if capability < _BFLOAT16_PRODUCTS_FROM:
        major, minor = capability
        raise StudioError(
            FailureKind.DTYPE_UNSUPPORTED,
            f"The {card_name(device)} (compute capability {major}.{minor}) cannot multiply "
            "matrices in bfloat16: cuBLAS refuses it before compute capability 7.0. Choose "
            "float32 or float16.",
        )


def has_context(device: torch.device) -> bool:
    """Return whether this process already has a context on a card; creates none."""
    if device.type == "cpu" or not torch.cuda.is_initialized():
        return False
    return bool(torch._C._cuda_hasPrimaryContext(device.index))  # type: ignore[attr-defined]


def synchronize(device: torch.device) -> None:
    """Wait until a device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def card_name(device: torch.device) -> str:
    """Return a card's name; PyTorch cannot return a name that is not UTF-8."""
    try:
        return str(torch.cuda.get_device_name(device))
    except UnicodeDecodeError:
        return "NVIDIA card"


def uuid_of(device: torch.device) -> str | None:
    """Return a card's UUID in NVML's format; None for the CPU."""
    if device.type == "cpu":
        return None
    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"


def free_bytes(device: torch.device) -> int:
    """Return the bytes that can be allocated now; on a card, this includes PyTorch's free memory.

    Creates a context on a card.
    """
    if device.type == "cpu":
        return int(psutil.virtual_memory().available)
    free, _total = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free + unused


def total_bytes(device: torch.device) -> int:
    """Return a device's whole memory in bytes; creates a context on a card."""
    if device.type == "cpu":
        return int(psutil.virtual_memory().total)
    return int(torch.cuda.mem_get_info(device)[1])
