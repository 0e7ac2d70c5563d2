"""The interface of an engine, and how its process ended, in words.

An engine is a child process, this process, or a recording.
"""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.core.failure import failure_from
from gpu_studio.core.messages.engine_messages import RequestFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.messages.engine_messages import Heartbeat
    from gpu_studio.core.messages.message import Event, Request


_log = logging.getLogger(__name__)


class EngineEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an engine that CUDA reads once, at its start."""

    visible_devices: str | None = None
    allocator_configuration: str | None = None

    def variables(self) -> dict[str, str]:
        """Return the environment variables of these settings for CUDA and PyTorch.

        Every torch from 2.6 on reads PYTORCH_CUDA_ALLOC_CONF. Newer versions also read
        PYTORCH_ALLOC_CONF, in which your own value would otherwise survive.
        """
        variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        if self.visible_devices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = self.visible_devices
        if self.allocator_configuration:
            variables["PYTORCH_CUDA_ALLOC_CONF"] = self.allocator_configuration
            variables["PYTORCH_ALLOC_CONF"] = self.allocator_configuration
        return variables


class Engine(Protocol):
    """Answers one request at a time; the window cannot tell one implementation from another.

    The window passes requests to `send` and listens to `events` during the engine's whole life. The
    terminal uses `run`. An engine is used in only one of these two ways.
    """

    @property
    def is_held(self) -> bool:
        """Whether a signal holds its process up (SIGSTOP), which is no fault of its device."""

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the answer to a request; the last event is the one that `Event.ends` it.

        Blocks until the next event. Never raises for a failure of the request or the engine: those
        are events, too.
        """

    def send(self, request: Request) -> None:
        """Pass the next request, after the previous one was answered. Thread safe."""

    def events(self) -> Iterator[Event | Heartbeat]:
        """Yield all events of the engine, from its start to its end.

        Call it on a worker thread: it blocks until the next event. The last event is one of
        `Event.ends_engine`, except after `close` and if the engine could not start. Another call
        starts the engine again.
        """

    def stop(self) -> None:
        """Ask the running request to end between two calls. Thread safe, returns immediately."""

    def abandon(self) -> None:
        """End the engine now, even during a call. Thread safe; the next run starts a new one."""

    def close(self) -> None:
        """Release the engine and its resources. Thread safe."""


class InProcessEngine(ABC):
    """An engine that works in the thread of its listener.

    A subclass answers the requests in `run`, which clears `_stop` at its start and ends early once
    it is set.
    """

    is_held = False

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._is_closed = False

    @abstractmethod
    def run(self, request: Request) -> Iterator[Event]:
        """Yield the answer to a request; see `Engine.run`."""

    def send(self, request: Request) -> None:
        """Pass the next request; see `Engine.send`."""
        self._requests.put(request)

    def events(self) -> Iterator[Event | Heartbeat]:
        """Yield the answers to all requests until `close`; see `Engine.events`."""
        while (request := self._requests.get()) is not None:
            failure = None
            try:
                for event in self.run(request):
                    yield event
                    if event.ends_engine:
                        return
            except Exception as error:
                _log.exception("An engine in this process failed during a request")
                failure = failure_from(error)
            # Outside the except block, so that the error and the objects in its frames are freed.
            if failure is not None:
                yield RequestFailed(failure=failure)

    def stop(self) -> None:
        """Ask the running request to end; see `Engine.stop`."""
        self._stop.set()

    def abandon(self) -> None:
        """Ask the running request to end; a thread cannot be ended in the middle of a call."""
        self._stop.set()

    def close(self) -> None:
        """Ask the running request to end, and end `events` then; no more requests run."""
        self._is_closed = True
        self._stop.set()
        self._requests.put(None)


if TYPE_CHECKING:
    EngineFactory = Callable[[EngineEnvironment], Engine]


def describe_exit(exit_code: int | None) -> str:
    """Return how an engine's process ended, in words."""
    if exit_code is None:
        return "PyTorch stopped answering."
    if exit_code in (-9, 137):
        return "The system ended PyTorch (signal 9): usually the PC ran out of memory (RAM)."
    if exit_code < 0:
        return f"PyTorch crashed (signal {-exit_code}): a driver or a library aborted it."
    return f"PyTorch quit by itself with exit code {exit_code}."
