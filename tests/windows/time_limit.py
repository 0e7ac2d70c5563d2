"""A limit for how long a part of the program may take."""

import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def breaking_off(limit_s: float, error: Exception) -> Iterator[None]:
    """Raise an error in the main thread if the body has not ended by then.

    The error also breaks off a wait, for example for a process (which `subprocess.run` then kills).
    """

    def break_off(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, break_off)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
