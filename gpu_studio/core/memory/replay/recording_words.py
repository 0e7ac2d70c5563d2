"""The sentences about recording a history of a workload's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import counted

if TYPE_CHECKING:
    from gpu_studio.core.messages.memory_messages import MemoryRecorded


def recorded_sentence(recorded: MemoryRecorded) -> str:
    """Return what a history has."""
    calls = counted(recorded.calls, "call")
    if recorded.is_out_of_memory:
        return f"Recorded {calls} of {recorded.workload}; then the card was out of memory."
    return f"Recorded {calls} of {recorded.workload}, from the operands on."
