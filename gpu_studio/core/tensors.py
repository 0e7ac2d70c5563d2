"""The tensors that can be asked for: their dtypes, by PyTorch's names, and their longest side."""

from __future__ import annotations

from gpu_studio.core.failure import FailureKind, StudioError

DTYPES = ("float16", "bfloat16", "float32", "float64")
ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
LARGEST_SIZE = 1 << 20


def check_dtype(dtype: str) -> None:
    """Raise `StudioError` for what is no dtype of this program."""
    if dtype not in DTYPES:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"“{dtype[:20]}” is not a dtype of this program: choose {', '.join(DTYPES)}.",
        )


def check_size(size: int) -> None:
    """Raise `StudioError` for a side that no tensor of this program has."""
    if not 1 <= size <= LARGEST_SIZE:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The size {size} is out of range: give 1 to {LARGEST_SIZE}.",
        )


def parse_dtypes(text: str) -> list[str]:
    """Return the dtypes in ``float32,float16``.

    Raises:
        StudioError: with one sentence that names those there are.
    """
    dtypes = list(dict.fromkeys(text.replace(",", " ").split()))
    for dtype in dtypes:
        check_dtype(dtype)
    if not dtypes:
        raise StudioError(FailureKind.BAD_REQUEST, f"Give a dtype: {', '.join(DTYPES)}.")
    return dtypes
