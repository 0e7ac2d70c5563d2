"""A failure as a value.

An exception object never crosses a thread or a process: its traceback keeps the failed frame's
tensors alive, which would spoil an out-of-memory experiment.
"""

from __future__ import annotations

import traceback
from enum import Enum

import msgspec

from gpu_studio.core.texts import plain_text


class FailureKind(str, Enum):
    """The reason for a failure, by which a program acts; people read its message."""

    BAD_REQUEST = "bad_request"
    NO_CUDA = "no_cuda"
    NO_SUCH_DEVICE = "no_such_device"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    DTYPE_UNSUPPORTED = "dtype_unsupported"
    OUT_OF_MEMORY = "out_of_memory"
    NO_KERNEL = "no_kernel"
    LIBRARY_UNSUPPORTED = "library_unsupported"
    CUDA_ERROR = "cuda_error"
    ENGINE_ENDED = "engine_ended"
    LINE_LOST = "line_lost"
    PC_SLEPT = "pc_slept"
    NOT_RECORDED = "not_recorded"
    FILE_REFUSED = "file_refused"
    NOT_SAVED = "not_saved"
    OWN_CODE = "own_code"
    INTERNAL = "internal"


class Failure(msgspec.Struct, frozen=True):
    """A failure: a sentence for people, and the traceback only for the log.

    ``fatal`` means that the engine cannot continue (a sticky CUDA error) and must be replaced.
    ``cause`` is what happened, where ``message`` also says what follows from it.
    """

    kind: FailureKind
    message: str
    traceback_text: str = ""
    fatal: bool = False
    cause: str = ""


class StudioError(Exception):
    """An expected failure with a sentence for the user."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def failure_from(error: BaseException) -> Failure:
    """Return an exception as a value; an unexpected exception gets a plain sentence."""
    if isinstance(error, StudioError):
        return Failure(error.kind, str(error))  # expected: its sentence is enough
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    line = first_line(str(error), 300)
    message = f"{type(error).__name__}: {line}" if line else type(error).__name__
    return Failure(FailureKind.INTERNAL, message, text)


def first_line(error_text: str, longest: int) -> str:
    """Return the first line of an error's text, at most `longest` characters; empty without one."""
    return plain_text((error_text.strip().splitlines() or [""])[0][:longest])
