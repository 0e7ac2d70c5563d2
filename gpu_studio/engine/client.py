"""The window's end of an engine that is a child process. No torch here."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.child_process import ChildProcess
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    EngineEnded,
    Event,
    Request,
    RequestFailed,
    RunFailed,
    Stop,
    decode_event,
    encode,
    is_last,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MODULE = "gpu_studio.engine.serve"
# A process that crashed closes its pipe before the driver has taken back its memory.
_LONGEST_END_S = 5.0


class ProcessEngine:
    """An engine in a child process, started with the first request and again after each death.

    A crash, an abort in a driver or a kill ends the child, never the window: the request that was
    running is answered by an `EngineEnded`, and the next one gets a fresh child.
    """

    def __init__(
        self, environment: EngineEnvironment | None = None, *, log_path: Path | None = None
    ) -> None:
        self._environment = environment or EngineEnvironment()
        self._log_path = log_path
        self._child: ChildProcess | None = None
        # Guards the child against being replaced by one thread while another ends it.
        self._lock = threading.Lock()
        self._closed = False
        self._abandoned = False

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is no child."""
        child = self._child
        return child.pid if child else None

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the answer to a request; see `core.engine.Engine.run`."""
        self._abandoned = False
        child = self._child
        # Looked at once: one that is being killed may be running now and gone a moment later.
        is_dead = child is not None and not child.is_running
        if child is not None and is_dead and not isinstance(request, DescribeEngine):
            # It died while nothing ran. A fresh one would answer, without what the old one held.
            yield EngineEnded(exit_code=self._discard(child))
            return
        try:
            if child is None or is_dead:
                child = self._fresh_child()
        except OSError as error:
            message = f"The engine could not be started: {error.strerror or error}"
            yield RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, message))
            return
        if child is None:
            yield EngineEnded(exit_code=None, stopped=True)
            return
        child.send(encode(request))
        for line in child.lines():
            try:
                event = decode_event(line)
            except msgspec.MsgspecError as error:
                # A line that no engine of this version writes: nothing after it can be trusted.
                child.kill()
                message = f"The engine answered something unreadable ({error})."
                yield RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, message, fatal=True))
                return
            if is_last(event, request):
                if isinstance(event, (RunFailed, RequestFailed)) and event.failure.fatal:
                    self._discard(child)
                yield event
                return
            yield event
        yield EngineEnded(exit_code=self._discard(child), stopped=self._abandoned)

    def stop(self) -> None:
        """Ask the running request to end between two calls."""
        with self._lock:
            if self._child is not None:
                self._child.send(encode(Stop()))

    def abandon(self) -> None:
        """End the child in the middle of what it does."""
        with self._lock:
            self._abandoned = True
            if self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """End the child; this engine starts no other.

        It holds nothing that is worth a slow good-bye, and the driver frees what a process had.
        """
        with self._lock:
            self._closed = True
            self._abandoned = True
            child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.end(timeout_s=1.0)

    def _fresh_child(self) -> ChildProcess | None:
        """Start a child and return it; None if this engine is closed."""
        with self._lock:
            if self._closed:
                return None
            self._child = ChildProcess(
                _MODULE, environment=self._environment.variables(), log_path=self._log_path
            )
            return self._child

    def _discard(self, child: ChildProcess) -> int | None:
        """Wait for a child that closed its pipe or said it cannot go on; return its exit code."""
        exit_code = child.end(timeout_s=_LONGEST_END_S)
        with self._lock:
            if self._child is child:
                self._child = None
        return exit_code
