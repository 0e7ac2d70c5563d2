"""An engine inside this process, run by the worker thread that iterates it.

Tests use it. A user may choose it to see how the window disturbs the numbers: every result says
that the window shared its process. It cannot be ended in the middle of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.engine import InProcessEngine
from gpu_studio.core.messages.engine_messages import EngineEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.engine.dispatcher import Dispatcher


class LocalEngine(InProcessEngine):
    """The same workloads as in the child process, without the process.

    Args:
        are_cards_asleep: whether the system has switched off every NVIDIA card of this PC.
    """

    def __init__(self, are_cards_asleep: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self._are_cards_asleep = are_cards_asleep
        self._dispatcher: Dispatcher | None = None

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the events of a request; see `core.engine.Engine.run`."""
        if self._dispatcher is None:
            from gpu_studio.engine.dispatcher import Dispatcher

            self._dispatcher = Dispatcher(
                in_window_process=True, are_cards_asleep=self._are_cards_asleep
            )
        self._stop.clear()
        if self._is_closed:
            yield EngineEnded(exit_code=None, stopped=True)
            return
        yield from self._dispatcher.run(request, self._stop)
