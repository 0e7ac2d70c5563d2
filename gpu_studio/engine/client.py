"""The window's side of an engine that runs in a child process. No torch here."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, Heartbeat, RequestFailed, Stop
from gpu_studio.core.packages_folder import variables_for
from gpu_studio.core.protocol import decode_line, encode
from gpu_studio.process.child_process import LONGEST_LINE, ChildProcess
from gpu_studio.process.steady_memory import steady_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpu_studio.core.messages.message import Event, Request


_MODULE = "gpu_studio.engine.serve"
QUICK, CPU_ALONE = "--without-torch", "--cpu-alone"
"""What the child is told: to work without PyTorch, and without asking a graphics driver."""


def child_variables(environment: EngineEnvironment, packages: Path | None = None) -> dict[str, str]:
    """Return the environment variables of an engine's child.

    Args:
        environment: the settings that CUDA reads at its start.
        packages: the folder with PyTorch; None if PyTorch is a package of this Python, or the
            variables of this process name it.
    """
    return {**environment.variables(), **variables_for(packages), **steady_variables()}


class ProcessEngine:
    """An engine in a child process, started with the first request and again after each crash.

    A crash, an abort in a driver or a kill ends the child, never the window. It yields an
    `EngineEnded`, even if no request was running, and the next request gets a new child.

    Args:
        environment: the settings that CUDA reads at its start.
        log_path: the file for the child's standard error; None inherits this process's.
        packages: returns the folder with PyTorch for the next child; None if PyTorch is a package
            of this Python.
    """

    def __init__(
        self,
        environment: EngineEnvironment | None = None,
        *,
        log_path: Path | None = None,
        packages: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._environment = environment or EngineEnvironment()
        self._log_path, self._packages = log_path, packages
        self._child: ChildProcess | None = None
        # Prevents one thread from replacing the child while another ends it.
        self._lock = threading.Lock()
        self._closed = False
        self._abandoned = False
        self._unsent: list[Request] = []
        self._stream: Iterator[Event | Heartbeat] | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is no child."""
        child = self._child
        return child.pid if child else None

    @property
    def is_held(self) -> bool:
        """See `core.engine.Engine.is_held`."""
        return self._child is not None and self._child.is_stopped

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the events of a request; see `core.engine.Engine.run`."""
        self.send(request)
        if self._stream is None:
            self._stream = self.events()
        for event in self._stream:
            if isinstance(event, Heartbeat):
                continue
            is_over = event.ends(request)
            if is_over and event.ends_engine:
                self._stream = None
            yield event
            if is_over:
                return
        self._stream = None

    def send(self, request: Request) -> None:
        """Send a request; it waits if the child does not exist yet."""
        with self._lock:
            if self._child is not None:
                self._send(self._child, request)
            else:
                self._unsent.append(request)

    def events(self) -> Iterator[Event | Heartbeat]:
        """Start a child and yield all its events; see `core.engine.Engine.events`."""
        try:
            child = self._start()
        except OSError as error:
            yield self._not_started(error)
            return
        if child is None:
            yield EngineEnded(exit_code=None, stopped=True)
            return
        for line in child.lines():
            if not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                break  # it died in the middle of a line
            try:
                event = self._event_of(line)
            except ValueError as error:
                # No engine of this version writes such a line: do not trust the lines after it.
                child.kill()
                event = self._unreadable(error)
            if event.ends_engine:
                self._discard(child)
                yield event
                return
            yield event
        yield self._ended(child, self._discard(child))

    def stop(self) -> None:
        """Ask the running request to end between two calls."""
        with self._lock:
            if self._child is not None:
                self._send(self._child, Stop())

    def abandon(self) -> None:
        """End the child, even in the middle of a call."""
        with self._lock:
            self._abandoned = True
            if self._child is not None:
                self._child.kill()

    def close(self) -> None:
        """End the child; this engine starts no other child.

        The child has nothing to save, so it need not end slowly; the driver frees its memory.
        """
        with self._lock:
            self._closed = True
            self._abandoned = True
            child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.end(limits.current.engine_kill_s)

    def _new_child(self) -> ChildProcess:
        """Start a child; raise `OSError` if there can be none."""
        return ChildProcess(
            _MODULE,
            environment=child_variables(self._environment, self._packages()),
            log_path=self._log_path,
        )

    def _not_started(self, error: OSError) -> Event:
        message = f"The engine could not start: {error.strerror or error}"
        return RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, message))

    def _line_of(self, request: Request) -> bytes:
        return encode(request)

    def _event_of(self, line: bytes) -> Event | Heartbeat:
        """Return the event in a line; raise `ValueError` if it has none."""
        try:
            return decode_line(line)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from error

    def _unreadable(self, error: ValueError) -> Event:
        message = f"The engine's answer is unreadable ({error})."
        return RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, message, fatal=True))

    def _ended(self, child: ChildProcess, exit_code: int | None) -> Event:
        return EngineEnded(exit_code=exit_code, stopped=self._abandoned)

    def _send(self, child: ChildProcess, request: Request) -> None:
        child.send(self._line_of(request))

    def _start(self) -> ChildProcess | None:
        """Return a new child that has the pending requests; None if this engine is closed."""
        with self._lock:
            if self._closed:
                return None
            self._abandoned = False
            unsent, self._unsent = self._unsent, []
            self._child = self._new_child()
            for request in unsent:
                self._send(self._child, request)
            return self._child

    def _discard(self, child: ChildProcess) -> int | None:
        """Wait for a child that closed its pipe or cannot continue; return its exit code."""
        exit_code = child.end(timeout_s=limits.current.engine_end_s)
        with self._lock:
            if self._child is child:
                self._child = None
        return exit_code


class QuickEngine(ProcessEngine):
    """An engine without PyTorch: adapters by their drivers, and NumPy on the CPU.

    Args:
        log_path: the file for the child's standard error; None inherits this process's.
        uses_adapters: whether to ask the drivers; one of them may crash or hang.
    """

    def __init__(self, *, log_path: Path | None = None, uses_adapters: bool = True) -> None:
        super().__init__(log_path=log_path)
        self._arguments = (QUICK, *(() if uses_adapters else (CPU_ALONE,)))

    def _new_child(self) -> ChildProcess:
        return ChildProcess(
            _MODULE, self._arguments, environment=steady_variables(), log_path=self._log_path
        )

    def _ended(self, child: ChildProcess, exit_code: int | None) -> Event:
        if self._abandoned or not exit_code:
            return super()._ended(child, exit_code)
        reason = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        message = (
            f"A graphics driver crashed ({reason}), and ended the measurement. Update the driver, "
            "or choose other devices."
        )
        return RequestFailed(failure=Failure(FailureKind.ENGINE_ENDED, message, fatal=True))
