"""Answer the requests of a process that has no PyTorch: adapters and NumPy do the work."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.devices.adapters import card_of
from gpu_studio.core.failure import FailureKind, StudioError, failure_from
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.quick.adapters import find_adapters, why_none
from gpu_studio.engine.quick.check import QuickCheck
from gpu_studio.engine.quick.compute import AdapterLostError, Compute
from gpu_studio.engine.quick.run import QuickRun
from gpu_studio.engine.quick.work import QUICK_WORKS, core_count

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.engine_messages import Adapter
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.engine.quick.adapters import FoundAdapter
    from gpu_studio.engine.sensor import Sensor


class QuickDispatcher(Dispatcher):
    """Answers requests by adapters and NumPy; see `engine.dispatcher.Dispatcher`.

    Args:
        cpu_name: the name of this PC's CPU.
        sensor: reads the devices for runs and checks; None if there is no sensor.
        uses_adapters: whether to ask the graphics drivers for what they can compute on.
    """

    def __init__(
        self, cpu_name: str = "CPU", sensor: Sensor | None = None, *, uses_adapters: bool = True
    ) -> None:
        super().__init__(sensor, cpu_name)
        self._uses_adapters = uses_adapters
        self._found: list[FoundAdapter] | None = None
        self._opened: dict[str, Compute] = {}

    def load(self) -> None:
        """Do nothing: what is needed loads in a moment."""

    @staticmethod
    def _failure_of(error: Exception) -> Failure:
        failure = failure_from(error)
        return msgspec.structs.replace(failure, fatal=isinstance(error, AdapterLostError))

    def _answer(self, request: Request, stop: threading.Event) -> Iterator[Event | None]:
        match request:
            case DescribeEngine():
                yield self._described()
            case RunWorkload():
                yield from self._run_one(request, stop)
            case RunInTurns():
                yield from self._run_in_turns(request, stop)
            case RunCheck():
                one = QuickCheck(request, stop, sensor=self._sensor, cpu_name=self._cpu_name)
                one.open_adapter = self._open
                yield from one.events()
            case _:
                message = "This needs PyTorch, which is not installed."
                raise StudioError(FailureKind.BAD_REQUEST, message)

    def _new_run(self, request: RunWorkload, stop: threading.Event, **shared: Any) -> QuickRun:
        return QuickRun(request, stop, self._open, **shared)

    def _described(self) -> EngineDescribed:
        """Describe what there is; without an adapter, the CPU alone."""
        reason, adapters = None, []
        try:
            adapters = [one.facts for one in self._adapters()] if self._uses_adapters else []
        except StudioError as error:
            reason = str(error)
        if adapters and all(one.is_software and one.interface == "OpenGL" for one in adapters):
            reason = why_none()  # Mesa's OpenGL comes with the desktop, also where Vulkan does not
        version = sys.version_info
        return EngineDescribed(
            pid=os.getpid(),
            torch_version="",
            cuda_reason=reason,
            cpu_threads=core_count(),
            python_version=f"{version.major}.{version.minor}.{version.micro}",
            workloads=tuple(work.description for work in QUICK_WORKS),
            adapters=tuple(adapters),
        )

    def _adapters(self) -> list[FoundAdapter]:
        if self._found is None:
            self._found = find_adapters()
        return self._found

    def _open(self, address: str) -> Compute:
        """Return an adapter, opened once for this process."""
        if address not in self._opened:
            found = {one.facts.address: one for one in self._adapters()}
            if address not in found:
                message = f"There is no {address[:20]} here: choose {', '.join(found)}."
                raise StudioError(FailureKind.NO_SUCH_DEVICE, message)
            self._opened[address] = Compute(found[address], self._card(found[address].facts))
        return self._opened[address]

    def _card(self, adapter: Adapter) -> str | None:
        """Return the identity of the card that an adapter is; None if that is not known."""
        if self._sensor is None or adapter.is_software:
            return None
        adapters = [one.facts for one in self._adapters()]
        card = card_of(adapter, adapters, self._sensor.cards())
        return None if card is None else card.identity
