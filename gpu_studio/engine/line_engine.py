"""An engine on another PC: how its child starts, and what its lines mean here."""

from __future__ import annotations

import collections
import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.line_trouble import LineGreeting, LineProblem, LineTrouble, detail_of_ssh
from gpu_studio.core.line_values import UntrustedError, event_here, request_there
from gpu_studio.core.messages.engine_messages import EngineEnded, Heartbeat, RequestFailed, Stop
from gpu_studio.core.messages.message import LineOpening
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.core.other_pc import ssh_command
from gpu_studio.core.protocol import decode_line, encode
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.process.line_child import LineChild

if TYPE_CHECKING:
    from gpu_studio.core.engine import EngineEnvironment
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.process.child_process import ChildProcess

_MOST_ANSWER_BYTES = 1 << 30
_log = logging.getLogger(__name__)


class LineEngine(ProcessEngine):
    """An engine of another PC; its devices have the PC's name in front.

    Args:
        pc: the other PC.
        environment: the settings that CUDA reads there at the engine's start.
    """

    def __init__(self, pc: OtherPc, environment: EngineEnvironment | None = None) -> None:
        super().__init__(environment)
        self._pc = pc
        self._greeting = LineGreeting(pc, "engine")
        self._asked: collections.deque[Request] = collections.deque()
        self._asking = threading.Lock()
        self._answer_bytes = 0

    def _new_child(self) -> ChildProcess:
        self._greeting = LineGreeting(self._pc, "engine")
        with self._asking:
            self._asked.clear()
        opening = LineOpening(
            visible_devices=self._environment.visible_devices,
            allocator_configuration=self._environment.allocator_configuration,
        )
        return LineChild(ssh_command(self._pc, "engine"), encode(opening), self._greeting)

    def _not_started(self, error: OSError) -> Event:
        return self._failed(LineProblem.NO_SSH, str(error))

    def _line_of(self, request: Request) -> bytes:
        if not isinstance(request, Stop):
            with self._asking:
                self._asked.append(request)
        return encode(request_there(request, self._pc.name))

    def _event_of(self, line: bytes) -> Event | Heartbeat:
        try:
            event = event_here(decode_line(line), self._pc.name)
            self._check(event, len(line))
        except (msgspec.MsgspecError, RecursionError, UntrustedError) as error:
            raise ValueError(str(error)) from error
        return event

    def _unreadable(self, error: ValueError) -> Event:
        return self._failed(LineProblem.NOT_OURS, str(error))

    def _ended(self, child: ChildProcess, exit_code: int | None) -> Event:
        assert isinstance(child, LineChild)
        if self._abandoned:
            return EngineEnded(exit_code=None, stopped=True)
        trouble = self._greeting.trouble(child, exit_code)
        return self._failed(trouble.problem, detail_of_ssh(child.error_text))

    def _failed(self, problem: LineProblem, why: str) -> RequestFailed:
        _log.warning("The line to another PC ended (%s): %s", problem.name, why)
        return RequestFailed(failure=LineTrouble(problem, self._pc).failure)

    def _check(self, event: Event | Heartbeat, size_bytes: int) -> None:
        """Raise `UntrustedError` for an event that answers nothing, or for too long an answer."""
        if isinstance(event, Heartbeat) or event.ends_engine:
            return
        with self._asking:
            runs = {run.run_id for run in _runs_of(self._asked[0])} if self._asked else set()
            self._answer_bytes += size_bytes
            if (
                not self._asked
                or (runs and getattr(event, "run_id", None) not in {None, *runs})
                or self._answer_bytes > _MOST_ANSWER_BYTES
            ):
                message = "an answer that does not end, or that nobody asked for"
                raise UntrustedError(message)
            if event.ends(self._asked[0]):
                self._asked.popleft()
                self._answer_bytes = 0


def _runs_of(request: Request) -> tuple[RunWorkload, ...]:
    if isinstance(request, RunInTurns):
        return request.runs
    return (request,) if isinstance(request, RunWorkload) else ()
