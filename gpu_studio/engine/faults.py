"""Translate PyTorch's exceptions to failures of the protocol.

PyTorch's errors differ by text far more than by class: an out-of-memory error may be a RuntimeError
about NVML, a missing CUDA an AssertionError.
"""

from __future__ import annotations

import msgspec
import torch

from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from, first_line
from gpu_studio.core.memory.oom_text import is_out_of_memory, read_oom_text
from gpu_studio.core.units import format_bytes
from gpu_studio.engine import error_texts
from gpu_studio.engine.device import accelerator


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
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or is_out_of_memory(text):
        # PyTorch's RAM allocator names itself; the errors of Python and C++ have no text.
        is_of_ram = isinstance(error, MemoryError) or "DefaultCPUAllocator" in text
        return FailureKind.OUT_OF_MEMORY, describe_out_of_memory(text, is_of_ram=is_of_ram)
    if error_texts.is_no_code(text):
        return FailureKind.NO_KERNEL, (
            f"This PyTorch ({torch.__version__}) has no code for this card. You need a "
            "different build of PyTorch; the Devices tab names it."
        )
    if error_texts.is_no_card(text):
        return FailureKind.NO_CUDA, accelerator().explain(text)
    if error_texts.is_unsupported_dtype(text):
        return FailureKind.DTYPE_UNSUPPORTED, (
            f"This device does not support this operation in this dtype: {_first_line(text)}"
        )
    if library := error_texts.refusing_library(text):
        return FailureKind.LIBRARY_UNSUPPORTED, (
            f"{library} does not work with this card or its driver: {_first_line(text)}."
        )
    if error_texts.is_broken(text):
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
    return error_texts.without_beginning(first_line(text, 200))
