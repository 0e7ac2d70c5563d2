"""The numbers in the text of PyTorch's out-of-memory error, for every version from 2.0 on.

The text is PyTorch's own (c10/cuda/CUDACachingAllocator.cpp); sizes are written by ``format_size``
of c10/core/Allocator.h: plain bytes up to 1 KiB, then two decimals of KiB, MiB and GiB. So a number
read here is exact to 0.005 of its unit, and "tried" is the segment the allocator
asked the driver for, not the tensor.
"""

from __future__ import annotations

import re

import msgspec

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = r"(\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)"
_PATTERNS = {
    "tried_bytes": (
        rf"Tried to allocate {_SIZE}",
        rf"Requested size: {_SIZE}",
        r"you tried to allocate (\d+) (bytes)",
    ),
    "total_bytes": (rf"total capaci?ty of {_SIZE}", rf"{_SIZE} total capacity"),
    "free_bytes": (rf"of which {_SIZE} is free", rf"{_SIZE} free"),
    "limit_bytes": (rf"{_SIZE} allowed",),
    "allocated_bytes": (
        rf"Of the allocated memory {_SIZE} is allocated",
        rf"{_SIZE} already allocated",
    ),
    "unallocated_bytes": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
}
# A missing value of the driver (all bits set) prints as 17179869184 GiB.
_LARGEST_BYTES = 1 << 60

_SIGNS = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "can't allocate memory",
    "not enough memory: you tried to allocate",
)


class OomNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the text says, in bytes; None where it does not."""

    tried_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    limit_bytes: int | None = None
    allocated_bytes: int | None = None
    unallocated_bytes: int | None = None


def read_oom_text(text: str) -> OomNumbers:
    """Return the numbers in an out-of-memory text; a text of anything else has none."""
    return OomNumbers(**{name: _first_size(text, forms) for name, forms in _PATTERNS.items()})


def is_out_of_memory(text: str) -> bool:
    """Return whether an error's text means that memory ended.

    Where NVML does not answer, PyTorch fails inside its own report of the error and raises a
    RuntimeError with an assertion of CUDACachingAllocator.cpp about ``NVML_SUCCESS`` instead.
    """
    if "NVML_SUCCESS" in text and "CUDACachingAllocator" in text:
        return True
    return any(sign in text for sign in _SIGNS)


def _first_size(text: str, patterns: tuple[str, ...]) -> int | None:
    for pattern in patterns:
        match = re.search(pattern, text)
        if match:
            size_bytes = round(float(match[1]) * _UNITS[match[2]])
            return size_bytes if size_bytes < _LARGEST_BYTES else None
    return None
