"""The state of a plan, a race or a check."""

from __future__ import annotations

from enum import Enum


class WorkState(Enum):
    """What a piece of work does that a user starts and may stop.

    ::

        IDLE ─► RUNNING ─► IDLE     (it is over, or the engine or the card ended it)
                   └─► STOPPING ─► IDLE
    """

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"

    @property
    def is_busy(self) -> bool:
        """Whether it is in progress."""
        return self is not WorkState.IDLE
