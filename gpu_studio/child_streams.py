"""A child's own end of its two pipes, moved away from where native libraries read and print.

A library may print to descriptor 1, which would break the protocol. It may also ask what
descriptor 0 is. On Windows that question waits behind a read of the same pipe that is pending in
another thread. OpenBLAS asks it at its start (numpy/numpy#24290): numpy's import never returned.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import BinaryIO

_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2


def take_over_stdin(buffering: int = -1) -> BinaryIO:
    """Return a private pipe that was standard input; descriptor 0 reads as empty from now on.

    Call it before any thread reads: the libraries that are loaded afterwards see NUL.

    Args:
        buffering: as for `open`; 0 for a thread that still reads when the interpreter ends, since
            the lock of a buffered reader would abort that end.
    """
    private = os.dup(_STANDARD_INPUT)
    _lead_to_null(_STANDARD_INPUT, os.O_RDONLY)
    return os.fdopen(private, "rb", buffering=buffering)


def take_over_stdout(buffering: int = -1) -> BinaryIO:
    """Return a private pipe that was standard output, and send the latter to standard error.

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
