"""Files that another program holds: on Windows, a virus scanner looks at a new file for seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    Result = TypeVar("Result")

_WAITS_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
ERRORS_HELD = (32, 33)
"""ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION of winerror.h."""


def is_held(error: OSError) -> bool:
    """Return whether another program holds a file: it may let go."""
    code = getattr(error, "winerror", None)
    return code in ERRORS_HELD or isinstance(error, PermissionError)


def patiently(
    work: Callable[[], Result],
    wait: Callable[[float], None],
    may_pass: Callable[[OSError], bool] = is_held,
) -> Result:
    """Do something to a file, and again after a while if another program holds the file.

    Args:
        work: What to do; it begins anew each time.
        wait: Waits some seconds.
        may_pass: Returns whether another attempt may succeed after an error.

    Raises:
        OSError: Of the last attempt.
    """
    for seconds in _WAITS_S:
        try:
            return work()
        except OSError as error:
            if not may_pass(error):
                raise
        wait(seconds)
    return work()
