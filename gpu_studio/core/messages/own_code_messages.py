"""The messages between window and engine about a user's own code."""

from __future__ import annotations

from gpu_studio.core.messages.message import Event, LastEvent, Request, Seconds
from gpu_studio.core.messages.run_messages import (  # noqa: TC001  # msgspec reads it
    OwnCode,
    WorkloadDescription,
)

_ROUNDS, _LONGEST_S = 12, 60.0


class OpenOwnCode(Request, frozen=True, kw_only=True):
    """Run a user's code once on the CPU, to know what can be chosen for it.

    It runs with the user's rights, so an engine that gets this serves nothing else.
    """

    code: OwnCode


class OwnCodeOpened(LastEvent, frozen=True, kw_only=True):
    """What there is to choose for a user's code.

    ``call_s`` is the time of the call, ``remarks`` are sentences on what was taken as something
    else than it says.
    """

    workload: WorkloadDescription
    call_s: Seconds
    remarks: tuple[str, ...] = ()

    @property
    def least_s(self) -> float:
        """The time of a run that has the rounds for a verdict, up to a minute."""
        return min(_ROUNDS * self.call_s, _LONGEST_S)


class OwnCodePrinted(Event, frozen=True, kw_only=True):
    """What a user's code printed since the last such event, up to a limit."""

    text: str
