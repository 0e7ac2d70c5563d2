"""A child's side of its two pipes, moved away from the descriptors of native libraries.

A library may print to descriptor 1, which would break the protocol. It may also query the type of
descriptor 0. On Windows, that query waits for a pending read of the same pipe in another thread.
OpenBLAS makes this query at its start (numpy/numpy#24290): numpy's import never returned.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def take_over_stdin(buffering: int = -1) -> BinaryIO:
    """Return standard input as a private pipe; from now on, descriptor 0 reads as empty.

    Call it before any thread reads: libraries that are loaded afterwards see NUL.

    Args:
        buffering: as for `open`; 0 for a thread that still reads when the interpreter ends:
            the lock of a buffered reader would abort the shutdown.
    """
    private = os.dup(_STANDARD_INPUT)
    _lead_to_null(_STANDARD_INPUT, os.O_RDONLY)
    return os.fdopen(private, "rb", buffering=buffering)


def take_over_stdout(buffering: int = -1) -> BinaryIO:
    """Return standard output as a private pipe; from now on, descriptor 1 is standard error.

    Args:
        buffering: as for `open`.
    """
    private = os.dup(_STANDARD_OUTPUT)
    try:
        os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    except OSError:  # started without a standard error
        _lead_to_null(_STANDARD_OUTPUT, os.O_WRONLY)
    sys.stdout = sys.stderr
    return os.fdopen(private, "wb", buffering=buffering)


def _lead_to_null(descriptor: int, flags: int) -> None:
    null = os.open(os.devnull, flags)
    try:
        os.dup2(null, descriptor)
    finally:
        os.close(null)
