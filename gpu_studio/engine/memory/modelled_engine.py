"""An engine without PyTorch and without a card: a model of the allocator answers instead.

It answers requests about memory, on cards such as ``model:1996``, and marks every answer as
modeled. The model uses the allocator configuration of its environment.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpu_studio.core.engine import EngineEnvironment, InProcessEngine
from gpu_studio.core.failure import Failure, FailureKind, StudioError, failure_from
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    EngineEnded,
    RequestFailed,
)
from gpu_studio.core.messages.memory_messages import (
    EmptyCache,
    ReadMemory,
    ReadSegments,
    RunMemoryExperiment,
    cache_emptied,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.memory.modelled_memory import ModelledMemory
    from gpu_studio.core.messages.message import Event, Request

MODELLED_VERSION = "2.13.0"
"""The version of PyTorch whose allocator is modeled."""


class ModelledEngine(InProcessEngine):
    """Satisfies `core.engine.Engine` for modeled cards, one card at a time.

    A card's memory stays as a request leaves it, until a request names another card or the engine
    is closed.
    """

    def __init__(self, environment: EngineEnvironment | None = None) -> None:
        super().__init__()
        self._conf = (environment or EngineEnvironment()).allocator_configuration or ""
        self._memory: ModelledMemory | None = None

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the events of a request; see `core.engine.Engine.run`."""
        self._stop.clear()
        if self._is_closed:
            yield EngineEnded(exit_code=None, stopped=True)
            return
        try:
            for event in self._answer(request):
                yield event
                if event.ends(request):
                    return
        except Exception as error:
            failure = failure_from(error)
        # Outside the except block, the error and its frames are gone.
        yield RequestFailed(failure=failure)

    def _answer(self, request: Request) -> Iterator[Event]:
        match request:
            case DescribeEngine():
                yield EngineDescribed(
                    pid=os.getpid(),
                    torch_version=f"{MODELLED_VERSION} (simulated)",
                    cuda_reason="This engine only models a card's memory: it computes nothing.",
                    allocator_configuration=self._conf or None,
                    python_version=".".join(map(str, sys.version_info[:3])),
                )
            case ReadMemory():
                yield self._card(request.device).read()
            case ReadSegments():
                card = self._card(request.device)
                yield card.segments(card.read())
            case EmptyCache():
                card = self._card(request.device)
                before = card.read("empty_cache")
                card.empty_cache()
                yield cache_emptied(before, card.read())
            case RunMemoryExperiment():
                from gpu_studio.core.memory.experiment import run_experiment

                yield from run_experiment(request, self._card(request.device), self._stop)
            case _:
                message = "A simulated card only has memory: nothing can run on it."
                yield RequestFailed(failure=Failure(FailureKind.BAD_REQUEST, message))

    def _card(self, address: str) -> ModelledMemory:
        """Return the card of an address; its memory is empty unless it was the last card used.

        Raises:
            StudioError: not a simulated card, or an invalid allocator configuration.
        """
        from gpu_studio.core.memory.modelled_cards import card_at
        from gpu_studio.core.memory.modelled_memory import ModelledMemory

        if self._memory is None or self._memory.device != address:
            try:
                self._memory = ModelledMemory(card_at(address), self._conf)
            except ValueError as error:
                raise StudioError(
                    FailureKind.BAD_REQUEST,
                    f"These allocator options cannot be used: {error}.",
                ) from error
        return self._memory
