"""Explains an out-of-memory error from its text alone, so it works for any program's error.

The text may be a whole terminal: wrapped and quoted, with tracebacks and several errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from gpu_studio.core.memory.oom_text import OomNumbers, is_nvml_assertion, letters_of, numbers_in
from gpu_studio.core.memory.tank import Tank, tank_of_error
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal[
    "card_full", "fragmented", "over_budget", "others", "too_large", "raced", "library", "nvml",
    "cpu", "unknown",
]  # fmt: skip

# How an error begins, in a text without spaces.
_BEGINNINGS = re.compile(
    r"(?:CUDA|HIP|XPU)outofmemory\.|(?:CUDA|HIP)error:outofmemory|cudaruntimeerror\(2\):outofmemory"
    r"|CUBLAS_STATUS_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED|CUDNN_STATUS_ALLOC_FAILED"
    r"|NVML_SUCCESS==\w{1,9}INTERNALASSERTFAILED|DefaultCPUAllocator:"
    r"|Allocationondevice\d{1,4}wouldexceed"
)
_NOT_STARTED = "CUBLAS_STATUS_NOT_INITIALIZED"
_LIBRARIES = {
    "CUBLAS_STATUS_ALLOC_FAILED": "cuBLAS",
    _NOT_STARTED: "cuBLAS",
    "CUDNN_STATUS_ALLOC_FAILED": "cuDNN",
}


class OomExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """An error explained.

    Attributes:
        kind: the kind of error, from its numbers.
        headline: its name.
        meaning: the explanation, in sentences.
        first_steps: what to try, the most promising step first.
        numbers: the numbers of the text, in bytes.
        tank: the card as the text describes it; None if it does not.
        errors: the number of errors in the text.
    """

    kind: Kind
    headline: str
    meaning: str
    first_steps: tuple[str, ...]
    numbers: OomNumbers
    tank: Tank | None
    errors: int


def explain_oom_text(text: str, *, last: bool = False) -> OomExplanation | None:
    """Return the explanation of an error; None for a text without an out-of-memory error.

    Args:
        text: any text that contains the error.
        last: explain the last of several errors. Otherwise the first, which causes the errors
            that occur while it is handled.
    """
    letters = letters_of(text)
    places = [match.start() for match in _BEGINNINGS.finditer(letters)]
    if not places:
        return None
    chosen = len(places) - 1 if last else 0
    end = places[chosen + 1] if chosen + 1 < len(places) else len(letters)
    error = letters[places[chosen] : end]
    numbers = numbers_in(error)
    kind = _kind_of(error, numbers)
    headline, meaning = _MEANINGS[kind](error, numbers)
    return OomExplanation(
        kind=kind,
        headline=headline,
        meaning=meaning,
        first_steps=_STEPS[kind],
        numbers=numbers,
        tank=tank_of_error(numbers),
        errors=len(places),
    )


def _kind_of(error: str, numbers: OomNumbers) -> Kind:
    if is_nvml_assertion(error):
        return "nvml"
    if error.startswith("DefaultCPUAllocator"):
        return "cpu"
    if any(error.startswith(sign) for sign in _LIBRARIES):
        return "library"
    return _kind_by_numbers(error, numbers)


def _kind_by_numbers(error: str, numbers: OomNumbers) -> Kind:
    tried, free = numbers.tried_bytes, numbers.free_bytes
    if "preemptivelyrejected" in error:
        return "over_budget"
    if "morethan1EB" in error:
        return "too_large"
    if tried is None:
        return "unknown"
    if numbers.total_bytes is not None and tried > numbers.total_bytes:
        return "too_large"
    if free is None:
        return "unknown"
    holes, room = unallocated_bytes(numbers) or 0, _room_bytes(numbers)
    if numbers.limit_bytes is not None and tried <= free:
        return "fragmented" if holes and tried <= room + holes else "over_budget"
    if tried < free:  # equal to two decimals does not prove that it would have fit
        return "raced"
    if holes and tried <= min(free, room) + holes:
        return "fragmented"
    others = sum(process.bytes for process in numbers.processes)
    if others and tried <= min(free + others, room) + holes:
        return "others"
    return "card_full"


def _room_bytes(numbers: OomNumbers) -> int:
    """Return the bytes that PyTorch may certainly still reserve within the limit.

    The result combines three numbers with two decimals, of which the limit is the largest. They
    may be off by 1/64 of it.
    """
    if numbers.limit_bytes is None:
        return 1 << 62
    reserved = numbers.reserved_bytes
    if reserved is None:
        parts = (
            numbers.allocated_bytes, numbers.unallocated_bytes, numbers.private_pools_bytes
        )  # fmt: skip
        reserved = sum(part or 0 for part in parts)
    return max(0, numbers.limit_bytes - reserved - numbers.limit_bytes // 64)


def unallocated_bytes(numbers: OomNumbers) -> int | None:
    """Return the bytes that PyTorch reserved but no tensor holds, if the text has them."""
    if numbers.unallocated_bytes is not None:
        return numbers.unallocated_bytes
    if numbers.reserved_bytes is None or numbers.allocated_bytes is None:
        return None
    return max(0, numbers.reserved_bytes - numbers.allocated_bytes)


def _card_full(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    less = "Even all of it together isn't enough."
    if numbers.tried_bytes == numbers.free_bytes:
        less = "With two decimals the two look equal; to the byte, there was less."
    return "The card is full.", f"{_asked(numbers)} {less}"


def _fragmented(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    limit = (
        f" This process may reserve at most {_size(numbers.limit_bytes)}, and cannot get all of "
        "that."
    )
    return "Fragmented.", (
        f"{_asked(numbers)}{limit if numbers.limit_bytes else ''} Together with the "
        f"{_size(unallocated_bytes(numbers))} that PyTorch has reserved but not allocated "
        "it would be enough, but that memory is in pieces between tensors that are in use."
    )


def _over_budget(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    limit = f" of {_size(numbers.limit_bytes)}" if numbers.limit_bytes else ""
    return "Over the budget.", (
        f"The card had room, but this process may not reserve more than its limit{limit}. The "
        "program called set_per_process_memory_fraction, or set the option."
    )


def _others(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    others = sum(process.bytes for process in numbers.processes)
    return "Other programs hold the memory.", (
        f"{_asked(numbers)} Other processes hold {_size(others)}; without them the request would "
        "fit."
    )


def _too_large(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = _size(numbers.tried_bytes)
    return "Larger than the whole card.", (
        f"{tried or 'More than an exbibyte'} in one piece is more than the whole card, so "
        "freeing memory does not help. Often a shape is wrong: for example, a product of two "
        "vectors became a matrix."
    )


def _raced(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = _size(numbers.tried_bytes)
    return "There was room.", (
        f"The program asked for {tried}, and {_size(numbers.free_bytes)} was free when the error "
        "was written. Another program freed memory at that moment, or addresses ran out."
    )


def _library(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    library = next(name for sign, name in _LIBRARIES.items() if error.startswith(sign))
    if error.startswith(_NOT_STARTED):
        return f"{library} could not start, often because memory ran out.", (
            f"{library} needs memory of its own to start. If the card was full, this is an "
            "out-of-memory error in other words. It can also follow an earlier CUDA error, or mean "
            "that the driver and PyTorch do not match."
        )
    return f"{library} got no memory.", (
        f"{library} needs memory of its own and asked the driver for it after PyTorch had "
        "reserved the rest. This is an out-of-memory error in other words."
    )


def _nvml(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "Out of memory, and the error report failed.", (
        "PyTorch wanted to report how full the card is, but NVML did not answer. That is why "
        "you see this assertion instead of the out-of-memory error."
    )


def _cpu(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = _size(numbers.tried_bytes)
    return "The PC ran out of memory, not the card.", (
        f"PyTorch asked the system for {tried or 'memory'} of RAM, and the system refused."
    )


def _unknown(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "Out of memory.", "The driver says so without any numbers."


_MEANINGS: dict[Kind, Callable[[str, OomNumbers], tuple[str, str]]] = {
    "card_full": _card_full,
    "fragmented": _fragmented,
    "over_budget": _over_budget,
    "others": _others,
    "too_large": _too_large,
    "raced": _raced,
    "library": _library,
    "nvml": _nvml,
    "cpu": _cpu,
    "unknown": _unknown,
}

_STEPS: dict[Kind, tuple[str, ...]] = {
    "card_full": (
        "Make the batch smaller: half the batch needs about half the activations.",
        "Wrap code that only evaluates in torch.no_grad(), which keeps no activations.",
        "Use float16 or bfloat16, if the card supports it, for half the bytes.",
    ),
    "fragmented": (
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before Python starts (Linux).",
        "On Windows try max_split_size_mb:128 in the same variable.",
        "Make the large tensors first, and keep no small ones between them.",
    ),
    "over_budget": (
        "Raise the limit: torch.cuda.set_per_process_memory_fraction(1.0).",
        "Look for per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.",
    ),
    "others": (
        "See which programs use the card (nvidia-smi or the Devices tab), and close some of them.",
        "An old Python process may still be running, such as a notebook kernel.",
    ),
    "too_large": (
        "Print the shapes of the tensors in the failing line.",
        "Split the work into parts.",
    ),
    "raced": (
        "Run it again.",
        "If the error returns, check which other programs use the card at the same time.",
    ),
    "library": (
        "Make the batch smaller, so that PyTorch leaves memory for the library.",
        "Run one small matrix product first, so that the library gets its memory early.",
    ),
    "nvml": (
        "Use less memory: a smaller batch, torch.no_grad(), or a smaller type.",
        "Then find out why NVML fails. After a driver update, restart the PC.",
    ),
    "cpu": (
        "Load the data in parts, or use fewer DataLoader workers.",
        "Look for a wrong shape: the requested size is often a clue.",
    ),
    "unknown": (
        "Set CUDA_LAUNCH_BLOCKING=1 to see which line causes the error.",
        "Check with nvidia-smi how full the card is before the program starts.",
    ),
}


def _asked(numbers: OomNumbers) -> str:
    total = f" of {_size(numbers.total_bytes)}" if numbers.total_bytes else ""
    return (
        f"The program asked for {_size(numbers.tried_bytes)}, and {_size(numbers.free_bytes)}"
        f"{total} was free."
    )


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_bytes(size_bytes)
