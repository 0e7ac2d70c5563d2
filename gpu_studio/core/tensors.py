"""The limits of requested tensors: their dtypes, by PyTorch's names, and their longest side."""

from __future__ import annotations

from gpu_studio.core.failure import FailureKind, StudioError

DTYPES = ("float16", "bfloat16", "float32", "float64")
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
LARGEST_SIZE = 1 << 20


def check_dtype(dtype: str) -> None:
    """Raise `StudioError` if the program does not support a dtype."""
    if dtype not in DTYPES:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"“{dtype[:20]}” is not a supported dtype. Choose {', '.join(DTYPES)}.",
        )


def check_size(size: int) -> None:
    """Raise `StudioError` if the program does not support a side length."""
    if not 1 <= size <= LARGEST_SIZE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The size {size} is out of range. Use 1 to {LARGEST_SIZE}.",
        )


def parse_dtypes(text: str) -> list[str]:
    """Return the dtypes in ``float32,float16``.

    Raises:
        StudioError: a dtype is not supported; the sentence names the supported ones.
    """
    dtypes = list(dict.fromkeys(text.replace(",", " ").split()))
    for dtype in dtypes:
        check_dtype(dtype)
    if not dtypes:
        raise StudioError(FailureKind.BAD_REQUEST, f"Choose a dtype: {', '.join(DTYPES)}.")
    return dtypes
