"""How long a test waits before it says that something never came.

Only a failure waits so long: what is waited for ends the wait. So it is generous, and no test
depends on how busy the machine is.
"""

import time
from collections.abc import Callable, Iterable

import psutil
import pytest

from gpu_studio.core import limits

PATIENCE_S = 60.0
PATIENCE_MS = round(PATIENCE_S * 1000)
_AN_HOUR_MS = 3_600_000
UNHURRIED = limits.TimeLimits(
    stop_ms=_AN_HOUR_MS,
    stop_check_ms=_AN_HOUR_MS,
    engine_silence_ms=_AN_HOUR_MS,
    engine_end_s=PATIENCE_S,
    succession_s=PATIENCE_S,
    sensors_start_ms=_AN_HOUR_MS,
    sensors_silence_ms=_AN_HOUR_MS,
    greeting_s=PATIENCE_S,
    thread_end_ms=PATIENCE_MS,
    queue_end_ms=PATIENCE_MS,
    pause_s=PATIENCE_S,
    disk_silence_s=PATIENCE_S,
)
"""The program's limits where no machine is too busy for them: of every test without its own."""


def limit(patch: pytest.MonkeyPatch, **changes: float) -> None:
    """Give a test limits of its own."""
    patch.setattr(limits, "current", limits.current._replace(**changes))


def until(is_so: Callable[[], object]) -> None:
    """Wait for something that another thread or process does."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.01)


def outliving(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Wait for the end of processes; return those that go on.

    An orphan that has ended stays listed until the system's first process looks after it, which
    may take seconds.
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while (alive := [process for process in processes if _is_alive(process)]) and (
        time.monotonic() < deadline_s
    ):
        time.sleep(0.01)
    return alive


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
