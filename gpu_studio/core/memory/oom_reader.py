"""What an out-of-memory error means, from its text alone: for errors of programs that are not ours.

A text may be a whole terminal: wrapped, quoted, with tracebacks and several errors in it.
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

# Where an error begins, in a text without blanks.
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
        kind: what it was, by its numbers.
        headline: its name.
        meaning: what the text says, in sentences.
        first_steps: what to try, the most promising first.
        numbers: what the text says, in bytes.
        tank: the card as the text describes it; None where it does not.
        errors: how many errors there are in the text.
    """

    kind: Kind
    headline: str
    meaning: str
    first_steps: tuple[str, ...]
    numbers: OomNumbers
    tank: Tank | None
    errors: int


def explain_oom_text(text: str, *, last: bool = False) -> OomExplanation | None:
    """Return what an error means; None for a text without an out-of-memory error.

    Args:
        text: anything that has the error in it.
        last: of several errors explain the last; else the first, which is the cause of those
            that come while it is handled.
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
    if tried < free:  # alike to two decimals is no proof that it would have fitted
        return "raced"
    if holes and tried <= min(free, room) + holes:
        return "fragmented"
    others = sum(process.bytes for process in numbers.processes)
    if others and tried <= min(free + others, room) + holes:
        return "others"
    return "card_full"


def _room_bytes(numbers: OomNumbers) -> int:
    """Return what the limit certainly lets PyTorch reserve besides what it has.

    Three numbers of two decimals make it up, the limit the largest: they may be off by 1/64 of it.
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
    """Return what PyTorch has reserved and no tensor holds, where the text says as much."""
    if numbers.unallocated_bytes is not None:
        return numbers.unallocated_bytes
    if numbers.reserved_bytes is None or numbers.allocated_bytes is None:
        return None
    return max(0, numbers.reserved_bytes - numbers.allocated_bytes)


def _card_full(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    less = "All there is to be had together is less."
    if numbers.tried_bytes == numbers.free_bytes:
        less = "To two decimals that looks alike; to the byte it was less."
    return "The card is full.", f"{_asked(numbers)} {less}"


def _fragmented(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    limit = (
        f" This process may reserve {_size(numbers.limit_bytes)} at most, and cannot take "
        "all of that."
    )
    return "Fragmented.", (
        f"{_asked(numbers)}{limit if numbers.limit_bytes else ''} Together with the "
        f"{_size(unallocated_bytes(numbers))} that PyTorch has reserved and not allocated "
        "it would be enough, but these lie in pieces between tensors that are in use."
    )


def _over_budget(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    limit = f" of {_size(numbers.limit_bytes)}" if numbers.limit_bytes else ""
    return "Over the budget.", (
        f"The card had room, but this process may not reserve more than its limit{limit}: "
        "somebody called set_per_process_memory_fraction, or set the option."
    )


def _others(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    others = sum(process.bytes for process in numbers.processes)
    return "Others have the memory.", (
        f"{_asked(numbers)} Other processes hold {_size(others)}; without them it would "
        "have fitted."
    )


def _too_large(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = _size(numbers.tried_bytes)
    return "Larger than any such card.", (
        f"{tried or 'More than an exbibyte'} in one piece is more than the whole card: "
        "no freeing helps. Often a shape is wrong, such as a product of two vectors that "
        "became a matrix."
    )


def _raced(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = _size(numbers.tried_bytes)
    return "There was room.", (
        f"{tried} were asked for, and {_size(numbers.free_bytes)} were free when the text "
        "was written. Somebody gave memory back in that moment, or addresses ran out."
    )


def _library(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    library = next(name for sign, name in _LIBRARIES.items() if error.startswith(sign))
    if error.startswith(_NOT_STARTED):
        return f"{library} could not start, often for want of memory.", (
            f"{library} needs working memory of its own when it starts. If the card was full, this "
            "is an out-of-memory error in other words. It also comes after an earlier CUDA error, "
            "and if the driver and PyTorch do not fit each other."
        )
    return f"{library} got no memory.", (
        f"{library} needs working memory of its own, and asked the driver for it when "
        "PyTorch had taken what there was. It is an out-of-memory error in other words."
    )


def _nvml(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "Memory ended, and the report failed.", (
        "PyTorch wanted to say how full the card is, and NVML, which knows, did not "
        "answer: so this assertion came instead of the out-of-memory error."
    )


def _cpu(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = _size(numbers.tried_bytes)
    return "The PC's memory ended, not the card's.", (
        f"PyTorch asked the system for {tried or 'memory'} in RAM and was refused."
    )


def _unknown(_error: str, _numbers: OomNumbers) -> tuple[str, str]:
    return "Memory ended.", "The driver said so, without a number."


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
        "Make the batch smaller; half of it needs about half of the activations.",
        "Wrap what only evaluates in torch.no_grad(): it keeps no activations.",
        "Use float16 or bfloat16 where the card can: half the bytes.",
    ),
    "fragmented": (
        "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before Python starts (Linux).",
        "On Windows try max_split_size_mb:128 in the same variable.",
        "Make the large tensors first, and keep no small ones among them.",
    ),
    "over_budget": (
        "Raise the limit: torch.cuda.set_per_process_memory_fraction(1.0).",
        "Look for per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.",
    ),
    "others": (
        "See who uses the card (nvidia-smi, or the Devices tab), and end what you do not need.",
        "An old Python process of yours may still be there: a notebook's kernel, for example.",
    ),
    "too_large": (
        "Print the shapes of what the failing line combines.",
        "Do the work in parts.",
    ),
    "raced": (
        "Run it again.",
        "If it comes back, look at who else uses the card at the same time.",
    ),
    "library": (
        "Make the batch smaller: the library needs some of what PyTorch takes.",
        "Do one small product before anything else, so that the library has its memory first.",
    ),
    "nvml": (
        "Do what helps with a full card: a smaller batch, torch.no_grad(), a smaller type.",
        "Then see why NVML fails: after an update of the driver restart the PC.",
    ),
    "cpu": (
        "Read the data in parts, or with fewer DataLoader workers.",
        "Look for a shape that is wrong: the size asked for often tells.",
    ),
    "unknown": (
        "Set CUDA_LAUNCH_BLOCKING=1 to see the line that it comes from.",
        "See in nvidia-smi how full the card is before the program starts.",
    ),
}


def _asked(numbers: OomNumbers) -> str:
    total = f" of {_size(numbers.total_bytes)}" if numbers.total_bytes else ""
    return (
        f"{_size(numbers.tried_bytes)} were asked for, and {_size(numbers.free_bytes)}{total} were "
        "free."
    )


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else format_bytes(size_bytes)
