"""The programs on a card: a sentence and a row for each, and ending one."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from gpu_studio.core.devices.card_programs import program_name
from gpu_studio.core.devices.facts import NOT_AVAILABLE, bytes_text, percent_text
from gpu_studio.core.notice import Notice, Tone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.core.messages.engine_messages import EngineDescribed

HEADINGS = ("PID", "Program", "User", "Kind", "GPU memory")
NUMBERS = (0, 4)
NO_MEMORY_ON_WINDOWS = "Process memory: n/a, Windows does not report it."
IS_WINDOWS = os.name == "nt"
_BUSY_PERCENT = 20.0
_LARGE_SHARE = 0.5  # of the card's memory


def own_pids(engine: EngineDescribed | None) -> dict[int, str]:
    """Return the processes of this program with what they are."""
    pids = {os.getpid(): "This window"}
    return pids | ({engine.pid: "This program's PyTorch"} if engine is not None else {})


def program_notices(
    processes: Sequence[GpuProcess], own: Mapping[int, str], total_bytes: int | None, most: int
) -> list[Notice]:
    """Return a sentence for each program, first those that slow the others down.

    Args:
        processes: all processes on the card.
        own: this program's, with what they are.
        total_bytes: the memory of the card; None if unknown.
        most: how many sentences there are: the last one may be about all other programs.
    """
    by_name: dict[str, list[GpuProcess]] = {}
    for one in processes:
        by_name.setdefault(own.get(one.pid) or program_name(one), []).append(one)
    mine = set(own.values())
    ranked = sorted(by_name.items(), key=lambda named: -(_memory(named[1]) or 0))
    found = [
        (_program_notice(name, of_one, None if name in mine else total_bytes), of_one)
        for name, of_one in ranked
    ]
    found.sort(key=lambda one: one[0].tone is not Tone.AMBER)
    shown = most if len(found) <= most else most - 1
    named, others = found[:shown], found[shown:]
    notices = [notice for notice, _ in named]
    if others:
        used = _figures([process for _, of_one in others for process in of_one])
        notices.append(Notice(f"{len(others)} other programs{used}."))
    return notices


def _program_notice(name: str, of_one: Sequence[GpuProcess], total_bytes: int | None) -> Notice:
    """Return the sentence of a program; without a total it never is what slows others down."""
    draws = any("graphics" in one.kind for one in of_one)
    computes = any("compute" in one.kind for one in of_one)
    does = "uses the card" if draws and computes else "draws" if draws else "computes"
    sentence = f"{name} {does}{_figures(of_one)}"
    if total_bytes is None or not computes:
        return Notice(f"{sentence}.")
    if _busy(of_one) >= _BUSY_PERCENT:
        return Notice(f"{sentence}. What else you run on it is slower.", Tone.AMBER)
    if (_memory(of_one) or 0) > _LARGE_SHARE * total_bytes:
        return Notice(f"{sentence}, more than half of the card.", Tone.AMBER)
    return Notice(f"{sentence}.")


def _figures(processes: Sequence[GpuProcess]) -> str:
    """Return how busy processes keep the card and their memory, as far as these are known."""
    memory, busy = _memory(processes), _busy(processes)
    known = [percent_text(busy) if busy else None, bytes_text(memory)]
    words = ", ".join(one for one in known if one)
    return f": {words}" if words else ""


def _memory(processes: Sequence[GpuProcess]) -> int | None:
    known = [one.memory_bytes for one in processes if one.memory_bytes is not None]
    return sum(known) if known else None


def _busy(processes: Sequence[GpuProcess]) -> float:
    return sum(one.busy_percent or 0.0 for one in processes)


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
        return (
            NO_MEMORY_ON_WINDOWS
            if IS_WINDOWS
            else "Process memory: n/a, this driver does not report it."
        )
    return ""


def process_row(process: GpuProcess, own: Mapping[int, str]) -> tuple[str, ...]:
    """Return the row of a process, under `HEADINGS`."""
    mine = own.get(process.pid, "")
    return (
        str(process.pid),
        f"{process.name}  ({mine[0].lower()}{mine[1:]})" if mine else process.name,
        process.user or NOT_AVAILABLE,
        process.kind,
        bytes_text(process.memory_bytes) or NOT_AVAILABLE,
    )


# ERROR_INVALID_PARAMETER of winerror.h: the error of opening a process that has ended.
_GONE_ON_WINDOWS = 87
_SYNCHRONIZE, _WAIT_OBJECT_0 = 0x0010_0000, 0  # winnt.h, winbase.h


def question(process: GpuProcess) -> str:
    """Return the question to confirm."""
    owner = f" of {process.user}" if process.user else ""
    drawing = " It draws on the screen: its windows may disappear." if _draws(process) else ""
    named = f"{process.name}{owner} (process {process.pid})"
    return f"End {named}? Unsaved work is lost.{drawing}"


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
