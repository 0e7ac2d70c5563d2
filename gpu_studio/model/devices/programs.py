"""The programs on a card: a row for each process, and ending one."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from gpu_studio.core.devices.card_programs import UNKNOWN
from gpu_studio.core.devices.facts import NOT_AVAILABLE, bytes_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.core.messages.engine_messages import EngineDescribed

HEADINGS = ("PID", "Program", "User", "Kind", "Load", "GPU memory", "RAM")
NUMBERS = (0, 4, 5, 6)


def own_pids(engine: EngineDescribed | None) -> dict[int, str]:
    """Return the processes of this program with what they are."""
    pids = {os.getpid(): "This window"}
    return pids | ({engine.pid: "This program's PyTorch"} if engine is not None else {})


def note(processes: Sequence[GpuProcess], memory_used: str) -> str:
    """Return a sentence about all processes on a card; empty if there is nothing to say.

    Args:
        processes: those that the driver lists.
        memory_used: the memory used on the card of all there is, in words; empty if unknown.
    """
    if not processes:
        if memory_used:
            return f"{memory_used} used. The driver does not say by which programs."
        return "The driver lists no program on this card."
    if all(process.memory_bytes is None for process in processes):
        return "Process memory: n/a, this driver does not report it."
    return ""


def process_row(process: GpuProcess, own: Mapping[int, str]) -> tuple[str, ...]:
    """Return the row of a process, under `HEADINGS`."""
    mine = own.get(process.pid, "")
    what = f"{mine[0].lower()}{mine[1:]}" if mine else process.unit
    return (
        str(process.pid),
        f"{process.name}  ({what})" if what else process.name,
        process.user or NOT_AVAILABLE,
        process.kind or NOT_AVAILABLE,
        percent_text(process.busy_percent) or NOT_AVAILABLE,
        bytes_text(process.memory_bytes) or NOT_AVAILABLE,
        bytes_text(process.shared_bytes) or NOT_AVAILABLE,
    )


def may_end(process: GpuProcess, own: Mapping[int, str]) -> bool:
    """Return whether a process is the user's own, and no part of this program."""
    return bool(process.is_yours) and process.pid not in own and process.name != UNKNOWN


# ERROR_INVALID_PARAMETER of winerror.h: the error of opening a process that has ended.
_GONE_ON_WINDOWS = 87
_SYNCHRONIZE, _WAIT_OBJECT_0 = 0x0010_0000, 0  # winnt.h, winbase.h


def question(process: GpuProcess) -> str:
    """Return the question to confirm."""
    drawing = " It draws on the screen: its windows may disappear." if _draws(process) else ""
    named = f"{process.name} (process {process.pid})"
    risk = f"What is not saved in {process.name} is lost, and so is work that it has not finished."
    return f"End {named}? {risk}{drawing}"


def end_process(process: GpuProcess, own_pids: Iterable[int]) -> str:
    """Ask a process to end; return the outcome as a sentence.

    Args:
        process: the process as the sensors last read it.
        own_pids: this program's own processes, which it does not end.
    """
    if process.pid in own_pids:
        return f"{process.name} belongs to this program: use PyTorch, Start PyTorch anew."
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
