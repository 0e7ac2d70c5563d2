"""What runs on this PC, and since when: needed to tell a restart of the PC from a crash."""

from __future__ import annotations

import psutil


def pc_started_at_s() -> float:
    """Return when the PC started, in seconds since 1970."""
    return float(psutil.boot_time())


def is_program_running(pid: int, before_s: float) -> bool:
    """Return whether a process runs that already ran at a time.

    Args:
        pid: its id, which a later process may have as well.
        before_s: the time, in seconds since 1970.
    """
    try:
        return float(psutil.Process(pid).create_time()) <= before_s
    except psutil.Error:
        return False
