"""What an engine of the window is doing."""

from __future__ import annotations

from enum import Enum


class EngineState(Enum):
    """What the engine is doing.

    ::

        ABSENT ─► STARTING ─► READY ◄─► BUSY ─► STOPPING ─► READY
                     ▲          └─────────┴─────────┴─► (dead) ─► STARTING, or FAILED
                     └──────────── restart ─────────────────────────────────┘
    """

    ABSENT = "no engine yet"
    STARTING = "starting"
    READY = "ready"
    BUSY = "working"
    STOPPING = "stopping"
    FAILED = "failed"

    @property
    def is_idle(self) -> bool:
        """Whether a request would start at once."""
        return self is EngineState.READY
