"""What an engine is, whoever does the work: a child process, this process, or a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.protocol import Event, Request


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
    """Does one request at a time; the window cannot tell one implementation from another."""

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the answer to a request; the last event is one of `protocol.is_last`.

        Called on a worker thread, which blocks until the next event. Never raises for a failure
        of the request or of the engine: those are events.
        """

    def stop(self) -> None:
        """Ask the running request to end between two calls. Thread safe, returns at once."""

    def abandon(self) -> None:
        """End the engine now, in the middle of a call. Thread safe; the next run starts afresh."""

    def close(self) -> None:
        """Release the engine and all it holds. Thread safe."""


if TYPE_CHECKING:
    EngineFactory = Callable[[EngineEnvironment], Engine]
