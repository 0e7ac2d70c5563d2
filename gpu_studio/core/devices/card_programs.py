"""The programs on a card: their memory, and which of them keeps it busy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpu_studio.core.devices.devices import GpuProcess

_SEPARATORS = re.compile(r"[/\\]")


def program_name(process: GpuProcess) -> str:
    """Return the name of a process without its folder."""
    return _SEPARATORS.split(process.name)[-1] or process.name


def memory_by_program(processes: Iterable[GpuProcess], most: int) -> list[tuple[str, int]]:
    """Return programs with their bytes, the largest first; the driver may report none.

    Args:
        processes: all processes on the card.
        most: how many are named; the others are one last row.
    """
    used: dict[str, int] = {}
    for process in processes:
        if process.memory_bytes is not None:
            name = program_name(process)
            used[name] = used.get(name, 0) + process.memory_bytes
    ranked = sorted(used.items(), key=lambda program: -program[1])
    named, others = ranked[:most], ranked[most:]
    if others:
        named.append((f"{len(others)} others", sum(size for _, size in others)))
    return named


def do_others_compute(processes: Sequence[GpuProcess], own_pid: int) -> bool | None:
    """Return whether another process computes on a card that this one uses; None if unknown.

    Programs that also draw do not count: Windows lists its whole desktop as both. In a container,
    the driver reports the host's process ids, and this process is among them.
    """
    if not any("compute" in one.kind for one in processes):
        return None
    others = [one for one in processes if one.kind == "compute" and one.pid != own_pid]
    return len(others) > (0 if _is_listed(processes, own_pid) else 1)


def busiest_other(processes: Sequence[GpuProcess], own_pid: int) -> int | None:
    """Return the process that worked most in the last second, or else the only other one listed.

    A game and a desktop count here. The driver does not tell the parts of processes for every card
    and system. In a container, its numbers are the host's, which name other processes here.
    """
    has_computing = any("compute" in one.kind for one in processes)
    if has_computing and not _is_listed(processes, own_pid):
        return None
    others = [one for one in processes if one.pid != own_pid]
    busiest = max(others, key=lambda one: one.busy_percent or 0.0, default=None)
    if busiest is not None and (busiest.busy_percent or len(others) == 1):
        return busiest.pid
    return None


def _is_listed(processes: Sequence[GpuProcess], pid: int) -> bool:
    return any(one.pid == pid for one in processes)
