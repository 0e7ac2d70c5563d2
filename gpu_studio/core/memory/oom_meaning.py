"""What an out-of-memory error means, and what to try: one cause and its steps for each kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpu_studio.core.memory.oom_programs import PROGRAM_MEANINGS, PROGRAM_STEPS
from gpu_studio.core.memory.oom_words import Kind, asked_text, sized

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.oom_text import OomNumbers


APPLE_TOO_LARGE = ("Invalidbuffersize", "Attemptingtoallocate")
NOT_STARTED = "CUBLAS_STATUS_NOT_INITIALIZED"
_LIBRARIES = {
    "CUBLAS_STATUS_ALLOC_FAILED": "cuBLAS",
    NOT_STARTED: "cuBLAS",
    "CUDNN_STATUS_ALLOC_FAILED": "cuDNN",
}
_VARIABLE = re.compile(r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF")


def meaning_of(kind: Kind, error: str, numbers: OomNumbers) -> tuple[str, str]:
    """Return an error's headline and its meaning.

    Args:
        kind: the kind of error.
        error: the text of this error from `letters_of`.
        numbers: the numbers in it.
    """
    headline, meaning = _MEANINGS[kind](error, numbers)
    return headline, f"{meaning} {_contradiction(numbers)}".rstrip()


def first_steps(kind: Kind, error: str) -> tuple[str, ...]:
    """Return what to try, with the names of the maker's tools."""
    variable = _VARIABLE.search(error)
    if error.startswith("HIP"):
        names = ("PYTORCH_HIP_ALLOC_CONF", "amd-smi")
    elif error.startswith("XPU"):
        names = ("PYTORCH_ALLOC_CONF", "xpu-smi")
    else:
        names = ("PYTORCH_CUDA_ALLOC_CONF", "nvidia-smi")
    conf = variable[0] if variable else names[0]
    return tuple(step.format(conf=conf, monitor=names[1]) for step in _STEPS[kind])


def held_bytes(numbers: OomNumbers) -> int | None:
    """Return the memory that the program held, if the text has it."""
    if numbers.in_use_bytes is not None:
        return max(numbers.in_use_bytes, _pytorch_bytes(numbers) or 0)
    return _pytorch_bytes(numbers)


def elsewhere_bytes(numbers: OomNumbers) -> int:
    """Return the part of the card that neither the program held nor was free."""
    held = held_bytes(numbers)
    if numbers.total_bytes is None or numbers.free_bytes is None or held is None:
        return 0
    return max(0, numbers.total_bytes - numbers.free_bytes - held)


def unallocated_bytes(numbers: OomNumbers) -> int | None:
    """Return the bytes that PyTorch reserved but no tensor holds, if the text has them."""
    if numbers.unallocated_bytes is not None:
        return numbers.unallocated_bytes
    if numbers.reserved_bytes is None or numbers.allocated_bytes is None:
        return None
    return max(0, numbers.reserved_bytes - numbers.allocated_bytes)


def is_more(first_bytes: int, second_bytes: int) -> bool:
    """Return whether one sum is larger than the other beyond the rounding of its parts."""
    return first_bytes > second_bytes + second_bytes // 64


def _pytorch_bytes(numbers: OomNumbers) -> int | None:
    if numbers.reserved_bytes is None and numbers.allocated_bytes is None:
        return None
    allocated = numbers.allocated_bytes or 0
    return max(numbers.reserved_bytes or 0, allocated + (unallocated_bytes(numbers) or 0))


def _contradiction(numbers: OomNumbers) -> str:
    """Return a sentence about sizes that cannot all be true; empty if they can."""
    total, free, held = numbers.total_bytes, numbers.free_bytes, held_bytes(numbers)
    allocated, reserved = numbers.allocated_bytes, numbers.reserved_bytes
    if allocated is not None and reserved is not None and is_more(allocated, reserved):
        return (
            f"The sizes contradict each other: {sized(allocated)} allocated is more than "
            f"{sized(reserved)} reserved."
        )
    if total is None or free is None:
        return ""
    if is_more(free, total):
        return (
            f"The sizes contradict each other: {sized(free)} free is more than the whole card, "
            f"{sized(total)}."
        )
    others = sum(process.bytes for process in numbers.processes)
    if held is None or is_more(held, total) or not is_more(held + others + free, total):
        return ""
    by_others = f", {sized(others)} held by other processes" if others else ""
    return (
        f"The sizes contradict each other: {sized(held)} held by this program{by_others} and "
        f"{sized(free)} free are more than the whole card, {sized(total)}."
    )


def _card_full(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    less = " Even all of it together isn't enough."
    if numbers.tried_bytes is None:
        less = ""
    elif numbers.tried_bytes == numbers.free_bytes:
        less = " With two decimals the two look equal; to the byte, there was less."
    return "The card is full.", f"{asked_text(numbers)}{less}"


def _reserve(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "The card is full.", (
        f"{asked_text(numbers)} The driver keeps the last part of a card for itself, so these "
        f"{sized(numbers.free_bytes)} are not available to programs."
    )


def _fragmented(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    limit = (
        f" This process may reserve at most {sized(numbers.limit_bytes)}, and cannot get all of "
        "that."
    )
    return "Fragmented.", (
        f"{asked_text(numbers)}{limit if numbers.limit_bytes else ''} Together with the "
        f"{sized(unallocated_bytes(numbers))} that PyTorch has reserved but not allocated "
        "it would be enough, but that memory is in pieces between tensors that are in use."
    )


def _over_budget(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    limit = f" of {sized(numbers.limit_bytes)}" if numbers.limit_bytes else ""
    return "Over the budget.", (
        f"The card had room, but this process may not reserve more than its limit{limit}. The "
        "program called set_per_process_memory_fraction, or set the option."
    )


def _others(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    others = sum(process.bytes for process in numbers.processes)
    if others:
        return "Other programs hold the memory.", (
            f"{asked_text(numbers)} Other processes hold {sized(others)}; without them the request "
            "would fit."
        )
    return "Other programs hold the memory.", (
        f"{asked_text(numbers)} This program held only {sized(held_bytes(numbers))}. Most of the "
        f"other {sized(elsewhere_bytes(numbers))} is in use by other programs."
    )


def _too_large(error: str, numbers: OomNumbers) -> tuple[str, str]:
    tried = sized(numbers.tried_bytes) or "More than an exbibyte"
    if error.startswith(APPLE_TOO_LARGE):
        return "Larger than Apple's GPU allows.", (
            f"{tried} in one piece is more than Metal allows on this Mac, so freeing memory does "
            "not help. Often a shape is wrong, or a batch far too large."
        )
    return "Larger than the whole card.", (
        f"{tried} in one piece is more than the whole card, so freeing memory does not help. Often "
        "a shape is wrong: for example, a product of two vectors became a matrix."
    )


def _one_piece(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "One piece is too large for this driver.", (
        f"The program asked for {sized(numbers.tried_bytes)} in one piece, and Intel's driver "
        "gives at most 4 GiB in one piece."
    )


def _spilled(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    asked = f"{asked_text(numbers)} " if numbers.tried_bytes is not None else ""
    return "The card is full, and so is the RAM behind it.", (
        f"{asked}The program held {sized(held_bytes(numbers))}, more than the card's "
        f"{sized(numbers.total_bytes)}: the driver had moved the rest to the PC's RAM, which is "
        "much slower, until no RAM was left for that."
    )


def _commit(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "The card had room, but Windows ran out of memory.", (
        f"{asked_text(numbers)} For everything on the card, Windows also sets aside space in RAM "
        "or page file, and the two together were full. Windows calls this the commit limit."
    )


def _refused(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "The card had room, but the PC probably did not.", (
        f"{asked_text(numbers)} The driver also needs the PC's memory for each piece: RAM, and on "
        "Windows the page file. That was most likely full."
    )


def _raced(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    return "There was room.", (
        f"{asked_text(numbers)} That was read after the request failed: another program freed "
        "memory at that moment."
    )


def _apple_limit(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    parts = [f"PyTorch held {sized(numbers.allocated_bytes)}"]
    if numbers.other_bytes is not None:
        parts.append(f"Metal itself {sized(numbers.other_bytes)}")
    more = f"{sized(numbers.tried_bytes)} more" if numbers.tried_bytes else "The next request"
    return "PyTorch's limit on this Mac is reached.", (
        f"{' and '.join(parts)}. {more} would exceed the limit for this program, "
        f"{sized(numbers.limit_bytes)}."
    )


def _apple_full(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    held = f" PyTorch held {sized(numbers.allocated_bytes)}." if numbers.allocated_bytes else ""
    other = f" Metal itself held {sized(numbers.other_bytes)}." if numbers.other_bytes else ""
    asked = f" The program asked for {sized(numbers.tried_bytes)}." if numbers.tried_bytes else ""
    limit = (
        f" Its limit, {sized(numbers.limit_bytes)}, was not reached." if numbers.limit_bytes else ""
    )
    return "The Mac is out of memory.", (
        "The GPU of a Mac uses the same memory as all programs, and that was full."
        f"{held}{other}{asked}{limit}"
    )


def _intel(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    if "OUT_OF_RESOURCES" in error:
        return "The Intel card stopped, often because it is full.", (
            "The driver reports that it is out of resources, without any numbers. Memory is the "
            "most common of these."
        )
    return "The Intel card is full.", (
        "Intel's driver reports that the card is out of memory, without any numbers."
    )


def _library(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    library = next(name for sign, name in _LIBRARIES.items() if error.startswith(sign))
    if error.startswith(NOT_STARTED):
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


def _no_free(_error: str, numbers: OomNumbers) -> tuple[str, str]:
    known = []
    if numbers.tried_bytes is not None:
        known.append(asked_text(numbers))
    held = held_bytes(numbers)
    if held is not None:
        total = f" of the card's {sized(numbers.total_bytes)}" if numbers.total_bytes else ""
        known.append(f"It held {sized(held)}{total}.")
    elif numbers.total_bytes is not None:
        known.append(f"The card has {sized(numbers.total_bytes)}.")
    if numbers.free_bytes is None:
        known.append("The text does not say how much was free.")
    elif numbers.tried_bytes is None:
        known.append(f"{sized(numbers.free_bytes)} was free, which was not enough.")
    needed_bytes = (held or 0) + (numbers.tried_bytes or 0)
    would_fit = numbers.total_bytes is not None and needed_bytes < numbers.total_bytes
    return "Out of memory." if would_fit else "The card is full.", " ".join(known)


def _unknown(error: str, _numbers: OomNumbers) -> tuple[str, str]:
    if error.startswith("Allocationondevice"):
        return "The card is full.", (
            "This short form, common in ComfyUI, says so without any numbers."
        )
    return "Out of memory.", "The driver says so without any numbers."


_MEANINGS: dict[Kind, Callable[[str, OomNumbers], tuple[str, str]]] = {
    **PROGRAM_MEANINGS,
    "card_full": _card_full,
    "reserve": _reserve,
    "fragmented": _fragmented,
    "over_budget": _over_budget,
    "others": _others,
    "too_large": _too_large,
    "one_piece": _one_piece,
    "spilled": _spilled,
    "commit": _commit,
    "refused": _refused,
    "raced": _raced,
    "apple_limit": _apple_limit,
    "apple_full": _apple_full,
    "intel": _intel,
    "library": _library,
    "nvml": _nvml,
    "no_free": _no_free,
    "unknown": _unknown,
}

_USE_LESS = (
    "Make the batch smaller: half the batch needs about half the activations.",
    "Wrap code that only evaluates in torch.no_grad(), which keeps no activations.",
    "Use float16 or bfloat16, if the card supports it, for half the bytes.",
)
_STEPS: dict[Kind, tuple[str, ...]] = {
    **PROGRAM_STEPS,
    "card_full": _USE_LESS,
    "reserve": _USE_LESS,
    "no_free": _USE_LESS,
    "fragmented": (
        "Set {conf}=expandable_segments:True before Python starts (Linux).",
        "On Windows try max_split_size_mb:128 in the same variable.",
        "Make the large tensors first, and keep no small ones between them.",
    ),
    "over_budget": (
        "Raise the limit: torch.cuda.set_per_process_memory_fraction(1.0).",
        "Look for per_process_memory_fraction in {conf}.",
    ),
    "others": (
        "See which programs use the card ({monitor} or the Devices tab), and close some of them.",
        "An old Python process may still be running, such as a notebook kernel.",
    ),
    "too_large": (
        "Print the shapes of the tensors in the failing line.",
        "Split the work into parts.",
    ),
    "one_piece": (
        "Split the work, so that no tensor is larger than 4 GiB.",
        "A newer Intel driver with a newer PyTorch allows larger pieces.",
    ),
    "spilled": (
        "Make the batch smaller, until PyTorch holds less than the card has.",
        "Use float16 or bfloat16, if the card supports it, for half the bytes.",
    ),
    "commit": (
        "Make the page file larger: search Windows for “Advanced system settings”, then "
        "Performance, Advanced, Virtual memory.",
        "Close programs that use much RAM, and start fewer DataLoader workers.",
    ),
    "refused": (
        "Watch the PC's RAM while the program runs, and close programs that use much of it.",
        "On Windows, make the page file larger.",
        "In a container, raise its memory limit.",
    ),
    "raced": (
        "Run it again.",
        "If the error returns, check which other programs use the card at the same time.",
    ),
    "apple_limit": (
        "Make the batch or the image smaller.",
        "Call torch.mps.empty_cache() after parts whose results you no longer need.",
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 removes the limit, but then the Mac may freeze.",
    ),
    "apple_full": (
        "Close other programs, such as a browser.",
        "Make the batch, the image or the model smaller.",
    ),
    "intel": (
        "Make the batch or the image smaller.",
        "Close other programs that use the card.",
    ),
    "library": (
        "Make the batch smaller, so that PyTorch leaves memory for the library.",
        "Run one small matrix product first, so that the library gets its memory early.",
    ),
    "nvml": (
        "Use less memory: a smaller batch, torch.no_grad(), or a smaller type.",
        "Then find out why NVML fails. After a driver update, restart the PC.",
    ),
    "unknown": (
        "Use less memory: a smaller batch, or a smaller image.",
        "Check with {monitor} how full the card is before the program starts.",
        "Set CUDA_LAUNCH_BLOCKING=1 to see which line causes the error.",
    ),
}
