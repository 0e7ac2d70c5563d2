"""The memory of a card by program: one program may be several processes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpu_studio.core.devices.devices import GpuProcess

_SEPARATORS = re.compile(r"[/\\]")


def memory_by_program(processes: Iterable[GpuProcess], most: int) -> list[tuple[str, int]]:
    """Return programs with their bytes, the largest first; the driver may report none.

    Args:
        processes: all processes on the card.
        most: how many are named; the others are one last row.
    """
    used: dict[str, int] = {}
    for process in processes:
        if process.memory_bytes is not None:
            name = _SEPARATORS.split(process.name)[-1] or process.name
            used[name] = used.get(name, 0) + process.memory_bytes
    ranked = sorted(used.items(), key=lambda program: -program[1])
    named, others = ranked[:most], ranked[most:]
    if others:
        named.append((f"{len(others)} others", sum(size for _, size in others)))
    return named
