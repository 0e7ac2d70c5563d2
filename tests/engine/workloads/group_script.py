"""Running a script whose processes work as a group."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# PyTorch's own threads, if a busy PC lets a process end before them: rare, and after the output.
_TORN_DOWN = "terminate called without an active exception"
_TRIES = 3


def output_of(command: Sequence[str], **options: Any) -> str:
    """Return what a script prints; it has to end with 0.

    One whose end PyTorch tore down is started again.
    """
    for _ in range(_TRIES):
        found = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        if found.returncode == 0 or _TORN_DOWN not in found.stderr:
            break
    assert found.returncode == 0, found.stderr
    return found.stdout
