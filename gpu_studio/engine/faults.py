"""Translate PyTorch's exceptions to failures of the protocol.

PyTorch's errors differ by text far more than by class: an out-of-memory error may be a RuntimeError
about NVML, a missing CUDA an AssertionError.
"""

from __future__ import annotations

import msgspec
import torch

from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import kind_of
from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from, first_line
from gpu_studio.core.memory.oom_text import read_oom_text
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.device import accelerator

_BEGINNINGS = ("CUDA error: ", "HIP error: ")


def failure_of(error: BaseException) -> Failure:
    """Return a failure with a sentence for an exception; keeps no part of the exception."""
    failure = failure_from(error)
    if isinstance(error, StudioError):
        return failure
    kind, message = _read(error, str(error))
    if kind is FailureKind.INTERNAL:
        return failure
    if kind is FailureKind.CUDA_ERROR:
        # After it, the driver refuses every call until the process ends.
        return msgspec.structs.replace(
            failure, kind=kind, message=f"{message} PyTorch has to restart.", fatal=True,
            cause=message,
        )  # fmt: skip
    return msgspec.structs.replace(failure, kind=kind, message=message)


def _read(error: BaseException, text: str) -> tuple[FailureKind, str]:
    known = kind_of(text)
    family = known.family if known is not None else None
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or family == Family.MEMORY:
        # PyTorch's RAM allocator names itself; the errors of Python and C++ have no text.
        is_of_ram = isinstance(error, MemoryError) or "DefaultCPUAllocator" in text
        return FailureKind.OUT_OF_MEMORY, describe_out_of_memory(text, is_of_ram=is_of_ram)
    match family:
        case Family.NO_CODE:
            return FailureKind.NO_KERNEL, (
                f"This PyTorch ({torch.__version__}) has no code for this card. You need a "
                "different build of PyTorch; the Devices tab names it."
            )
        case Family.NO_CARD:
            return FailureKind.NO_CUDA, accelerator().explain(text)
        case Family.DTYPE:
            return FailureKind.DTYPE_UNSUPPORTED, (
                f"This device does not support this operation in this dtype: {_first_line(text)}"
            )
        case Family.LIBRARY if known is not None:
            return FailureKind.LIBRARY_UNSUPPORTED, (
                f"{known.library} does not work with this card or its driver: {_first_line(text)}."
            )
        case Family.BROKEN:
            return FailureKind.CUDA_ERROR, f"The card stopped with an error: {_first_line(text)}."
    return FailureKind.INTERNAL, ""


def describe_out_of_memory(text: str, *, is_of_ram: bool = False) -> str:
    """Return one sentence with the numbers of an out-of-memory error.

    Args:
        text: the text of the error.
        is_of_ram: whether the PC ran out of memory, not a card.
    """
    numbers = read_oom_text(text)
    what = "The PC ran out of memory (RAM)" if is_of_ram else "There was not enough memory"
    if numbers.tried_bytes is None:
        return f"{what}."
    sentence = f"{what}: {format_bytes(numbers.tried_bytes)} more was needed"
    if numbers.free_bytes is None:
        return f"{sentence}."
    sentence += f", {format_bytes(numbers.free_bytes)} was free"
    if numbers.total_bytes is not None:
        sentence += f" of {format_bytes(numbers.total_bytes)}"
    return f"{sentence}."


def _first_line(text: str) -> str:
    """Return the first line of an error without the platform's name."""
    line = first_line(text, 200)
    for beginning in _BEGINNINGS:
        line = line.removeprefix(beginning)
    return line.rstrip(".")
