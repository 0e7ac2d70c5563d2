"""Ending a process of a card on request: a setting allows it, and a question comes before."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import GpuProcess


def question(process: GpuProcess) -> str:
    """Return what to ask before."""
    owner = f" of {process.user}" if process.user else ""
    drawing = " It draws on the screen: what it shows may vanish." if _draws(process) else ""
    named = f"{process.name}{owner} (process {process.pid})"
    return f"End {named}? What it has not saved is lost.{drawing}"


def end_process(process: GpuProcess, own_pids: set[int]) -> str:
    """Ask a process to end; return what came of it in a sentence.

    Args:
        process: as the sensors read it a moment ago.
        own_pids: this program's own processes, which are not ended here.
    """
    if process.pid in own_pids:
        return f"{process.name} belongs to this program: use Engine, Start a fresh engine."
    try:
        os.kill(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        return f"{process.name} ({process.pid}) has already ended."
    except PermissionError:
        return f"{process.name} ({process.pid}) belongs to another user: you may not end it."
    except OSError as error:
        return f"{process.name} ({process.pid}) could not be ended: {error.strerror}."
    return f"{process.name} ({process.pid}) was asked to end."


def _draws(process: GpuProcess) -> bool:
    return "graphics" in process.kind.lower()
