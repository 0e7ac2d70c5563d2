"""Ends a process on a card on request: a setting has to allow it, and the user confirms it."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import GpuProcess


# ERROR_INVALID_PARAMETER of winerror.h: the error of opening a process that has ended.
_GONE_ON_WINDOWS = 87
_SYNCHRONIZE, _WAIT_OBJECT_0 = 0x0010_0000, 0  # winnt.h, winbase.h


def question(process: GpuProcess) -> str:
    """Return the question to confirm."""
    owner = f" of {process.user}" if process.user else ""
    drawing = " It draws on the screen: its windows may disappear." if _draws(process) else ""
    named = f"{process.name}{owner} (process {process.pid})"
    return f"End {named}? Unsaved work is lost.{drawing}"


def end_process(process: GpuProcess, own_pids: set[int]) -> str:
    """Ask a process to end; return the outcome as a sentence.

    Args:
        process: the process as the sensors last read it.
        own_pids: this program's own processes, which it does not end.
    """
    if process.pid in own_pids:
        return f"{process.name} belongs to this program: use Engine, Start a new engine."
    if _is_over_on_windows(process.pid):
        return f"{process.name} ({process.pid}) has already ended."
    try:
        os.kill(process.pid, signal.SIGTERM)
    except PermissionError:
        return f"{process.name} ({process.pid}) belongs to another user. You may not end it."
    except OSError as error:
        if isinstance(error, ProcessLookupError) or _is_gone_on_windows(error):
            return f"{process.name} ({process.pid}) has already ended."
        return f"Could not end {process.name} ({process.pid}): {error.strerror}."
    # Windows has no signal that a program could handle: it has ended when the call returns.
    outcome = "was ended" if sys.platform == "win32" else "was asked to end"
    return f"{process.name} ({process.pid}) {outcome}."


def _is_gone_on_windows(error: OSError) -> bool:
    return getattr(error, "winerror", None) == _GONE_ON_WINDOWS


def _is_over_on_windows(pid: int) -> bool:
    """Return whether a process has ended but another one still holds it: ending it is denied."""
    if sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.WinDLL("kernel32")
        kernel32.OpenProcess.restype = ctypes.c_void_p
        handle = ctypes.c_void_p(kernel32.OpenProcess(_SYNCHRONIZE, False, pid))
        is_over = bool(handle and kernel32.WaitForSingleObject(handle, 0) == _WAIT_OBJECT_0)
        if handle:
            kernel32.CloseHandle(handle)
    else:
        is_over = False
    return is_over


def _draws(process: GpuProcess) -> bool:
    return "graphics" in process.kind.lower()
