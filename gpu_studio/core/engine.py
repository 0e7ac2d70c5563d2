"""What an engine is, whoever does the work: a child process, this process, or a recording."""

from __future__ import annotations

import logging
import queue
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.core.failure import failure_from
from gpu_studio.core.protocol import RequestFailed, is_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.protocol import Event, Heartbeat, Request

_log = logging.getLogger(__name__)


class EngineEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen only before an engine starts: CUDA reads it once, at its own start."""

    visible_devices: str | None = None
    allocator_configuration: str | None = None

    def variables(self) -> dict[str, str]:
        """Return the environment variables that say it to CUDA and PyTorch.

        PYTORCH_CUDA_ALLOC_CONF is the name that every torch from 2.6 on reads. A newer one reads
        PYTORCH_ALLOC_CONF too, where a user's own value would be left otherwise.
        """
        variables = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        if self.visible_devices is not None:
            variables["CUDA_VISIBLE_DEVICES"] = self.visible_devices
        if self.allocator_configuration:
            variables["PYTORCH_CUDA_ALLOC_CONF"] = self.allocator_configuration
            variables["PYTORCH_ALLOC_CONF"] = self.allocator_configuration
        return variables


class Engine(Protocol):
    """Does one request at a time; the window cannot tell one implementation from another.

    The window hands requests over with `send` and listens to `events` for as long as the engine
    lives. The terminal asks with `run`. One engine is used in one of the two ways.
    """

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the answer to a request; the last event is one of `protocol.is_last`.

        Blocks until the next event. Never raises for a failure of the request or of the engine:
        those are events.
        """

    def send(self, request: Request) -> None:
        """Hand over the next request, once the one before it is answered. Thread safe."""

    def events(self) -> Iterator[Event | Heartbeat]:
        """Yield everything the engine says, from its start to its end.

        Called on a worker thread, which blocks until the next event. The last event is one of
        `protocol.is_end`, except after `close` and where the engine could not be started. Called
        again, it starts the engine afresh.
        """

    def stop(self) -> None:
        """Ask the running request to end between two calls. Thread safe, returns at once."""

    def abandon(self) -> None:
        """End the engine now, in the middle of a call. Thread safe; the next run starts afresh."""

    def close(self) -> None:
        """Release the engine and all it holds. Thread safe."""


class InProcessEngine(ABC):
    """An engine that works in the thread that listens to it.

    A subclass answers requests in `run`.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()

    @abstractmethod
    def run(self, request: Request) -> Iterator[Event]:
        """Yield the answer to a request; see `Engine.run`."""

    def send(self, request: Request) -> None:
        """Hand over the next request; see `Engine.send`."""
        self._requests.put(request)

    def events(self) -> Iterator[Event | Heartbeat]:
        """Yield the answers to all requests until `close`; see `Engine.events`."""
        while (request := self._requests.get()) is not None:
            failure = None
            try:
                for event in self.run(request):
                    yield event
                    if is_end(event):
                        return
            except Exception as error:
                _log.exception("An engine in this process did not survive a request")
                failure = failure_from(error)
            # Outside of the except block: the error and what its frames hold are gone.
            if failure is not None:
                yield RequestFailed(failure=failure)

    def close(self) -> None:
        """End `events` as soon as the running request has ended."""
        self._requests.put(None)


if TYPE_CHECKING:
    EngineFactory = Callable[[EngineEnvironment], Engine]
