"""The link to an engine on another PC: how its child starts, and what its lines mean here.

Everything else is the `ProcessEngine` of an engine of this PC.
"""

from __future__ import annotations

import collections
import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.line_greeting import LineGreeting
from gpu_studio.core.line_trouble import LineProblem, LineTrouble, detail_of_ssh
from gpu_studio.core.line_values import UntrustedError, event_here, request_there
from gpu_studio.core.messages.engine_messages import (
    EngineEnded,
    Heartbeat,
    RequestFailed,
    Stop,
)
from gpu_studio.core.messages.line_messages import LineOpening
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.core.other_pc import ALIVE_EVERY_S, SILENCE_S, ssh_command, ssh_program
from gpu_studio.core.protocol import decode_line, encode
from gpu_studio.process.line_child import LineChild

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.core.other_pc import OtherPc

_MOST_ANSWER_BYTES = 1 << 30
_log = logging.getLogger(__name__)


class LineLink:
    """The link to an engine of another PC; see `engine.client.EngineLink`.

    Args:
        pc: the other PC.
        environment: the settings that CUDA reads there at the engine's start.
    """

    def __init__(self, pc: OtherPc, environment: EngineEnvironment) -> None:
        self._pc, self._environment = pc, environment
        self._greeting = LineGreeting(pc, "engine")
        self._asked: collections.deque[Request] = collections.deque()
        self._asking = threading.Lock()
        self._answer_bytes = 0

    def start(self) -> LineChild:
        """Start ssh; raise `OSError` if this PC has none."""
        self._greeting = LineGreeting(self._pc, "engine")
        with self._asking:
            self._asked.clear()
        ssh = ssh_program()
        if ssh is None:
            raise FileNotFoundError
        opening = LineOpening(
            visible_devices=self._environment.visible_devices,
            allocator_configuration=self._environment.allocator_configuration,
        )
        return LineChild(
            ssh_command(self._pc, "engine", ssh),
            encode(opening),
            self._greeting,
            alive_every_s=ALIVE_EVERY_S,
            silence_s=SILENCE_S,
        )

    def not_started(self, error: OSError) -> Event:
        """Return what to say if ssh could not be started."""
        _log.warning("ssh could not start: %s", error)
        return self._failed(LineProblem.NO_SSH)

    def lines_of(self, request: Request) -> Iterator[bytes]:
        """Yield the line of a request."""
        if not isinstance(request, Stop):
            with self._asking:
                self._asked.append(request)
        yield encode(request_there(request, self._pc.name))

    def event_of(self, line: bytes) -> Event | Heartbeat:
        """Return the event in a line; raise `ValueError` for what no engine of ours sends."""
        try:
            event = event_here(decode_line(line), self._pc.name)
            self._check(event, len(line))
        except (msgspec.MsgspecError, RecursionError, UntrustedError) as error:
            message = f"another PC sent what no engine sends: {error}"
            raise ValueError(message) from error
        return event

    def unreadable(self, error: ValueError) -> Event:
        """Return what to say for a line that raised `error`; nothing after it is read."""
        _log.warning("The line to another PC was ended: %s", error)
        return self._failed(LineProblem.NOT_OURS)

    def ended(self, child: LineChild, exit_code: int | None, *, stopped: bool) -> Event:
        """Return how the line ended."""
        if stopped:
            return EngineEnded(exit_code=None, stopped=True)
        trouble = self._greeting.trouble(child, exit_code)
        _log.warning("The line ended (%s): %s", trouble.problem.value, detail_of_ssh(child.errors))
        return RequestFailed(failure=trouble.failure)

    def _failed(self, problem: LineProblem) -> RequestFailed:
        trouble = LineTrouble(problem=problem, pc=self._pc.name)
        return RequestFailed(failure=trouble.failure)

    def _check(self, event: Event | Heartbeat, size_bytes: int) -> None:
        """Raise `UntrustedError` for an event that answers nothing, or for too long an answer."""
        if isinstance(event, Heartbeat) or event.ends_engine:
            return
        with self._asking:
            if not self._asked:
                message = "an answer without a request"
                raise UntrustedError(message)
            runs = {run.run_id for run in _runs_of(self._asked[0])}
            if runs and getattr(event, "run_id", None) not in {None, *runs}:
                message = "a run that was not asked for"
                raise UntrustedError(message)
            self._answer_bytes += size_bytes
            if self._answer_bytes > _MOST_ANSWER_BYTES:
                message = "an answer that does not end"
                raise UntrustedError(message)
            if event.ends(self._asked[0]):
                self._asked.popleft()
                self._answer_bytes = 0


def _runs_of(request: Request) -> tuple[RunWorkload, ...]:
    if isinstance(request, RunInTurns):
        return request.runs
    return (request,) if isinstance(request, RunWorkload) else ()
