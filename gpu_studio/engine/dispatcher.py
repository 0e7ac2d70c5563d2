"""Dispatch each request to the part of the engine that answers it. The first one imports PyTorch.

Both engines use this: the child process, and the engine inside the window's process.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import family_of
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.messages.memory_messages import (
    EmptyCache,
    ReadMemory,
    ReadSegments,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, RunPitfall
from gpu_studio.core.messages.placement_messages import PlaceModel, UseDevice
from gpu_studio.core.messages.run_messages import (
    OpenOwnCode,
    OwnCodePrinted,
    RunFailed,
    RunInTurns,
    RunWorkload,
)

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.engine.benchmark.rounds import MeasuredRun
    from gpu_studio.engine.own_code.limits import Prints
    from gpu_studio.engine.sensor import Sensor
    from gpu_studio.engine.switcher.placement import Placement


# PyTorch needs this on Windows and does not include it.
_MISSING_ON_WINDOWS = (
    " A Windows library is missing: install the Microsoft Visual C++ Redistributable "
    "(https://aka.ms/vs/17/release/vc_redist.x64.exe), then start GPU Studio again."
)


class Dispatcher:
    """Answers requests one after the other, in the thread that iterates.

    Args:
        sensor: reads the devices for runs and checks; None if there is no sensor.
        cpu_name: the name of this PC's CPU.
        are_cards_asleep: whether the system has switched off every NVIDIA card of this PC.
    """

    def __init__(
        self,
        sensor: Sensor | None = None,
        cpu_name: str = "CPU",
        are_cards_asleep: Callable[[], bool] = lambda: False,
    ) -> None:
        self._sensor = sensor
        self._cpu_name = cpu_name
        self._are_cards_asleep = are_cards_asleep
        self._placement: Placement | None = None
        self._own_prints: Prints | None = None
        self.lost: Callable[[Failure], object] | None = None
        """Ends the process with a failure, whatever it does; None if this is no process of ours."""

    def load(self) -> None:
        """Import PyTorch now. If that fails, every request reports it."""
        with contextlib.suppress(Exception):
            import torch  # noqa: F401

    def run(self, request: Request, stop: threading.Event) -> Iterator[Event]:
        """Yield the events of a request; a failure is its last event, never an exception.

        Args:
            request: the request.
            stop: set by any thread to end the request between two calls.
        """
        for event in self._guarded(request, self._answer(request, stop)):
            if self._own_prints is not None and (text := self._own_prints.take()):
                yield OwnCodePrinted(text=text)
            if event is not None:
                yield event

    def _guarded(self, request: Request, events: Iterator[Event | None]) -> Iterator[Event | None]:
        """Yield the events of a request, and its failure as an event."""
        try:
            for event in events:
                yield None if event is None else _with_whole_snippet(event)
            return
        except Exception as error:
            failure = self._failure_of(error)
        # Outside the except block, the error and the tensors in its frames are gone.
        if isinstance(request, RunWorkload):
            yield RunFailed(run_id=request.run_id, failure=failure)
        elif isinstance(request, RunPitfall):
            yield PitfallFailed(name=request.name, failure=failure)
        else:
            yield RequestFailed(failure=failure)

    @staticmethod
    def _failure_of(error: Exception) -> Failure:
        """Return what an error of a request means."""
        return _failure_of(error)

    def _answer(self, request: Request, stop: threading.Event) -> Iterator[Event | None]:
        if isinstance(request, (OpenOwnCode, RunWorkload, RunInTurns)):
            self._take_over_for(request)
        match request:
            case OpenOwnCode():
                from gpu_studio.engine.own_code.workload import open_own_code

                yield open_own_code(request)
            case DescribeEngine():
                from gpu_studio.engine.devices.description import describe_engine

                yield describe_engine(not request.wakes_cards and self._are_cards_asleep())
            case RunWorkload():
                yield from self._run_one(request, stop)
            case RunInTurns():
                yield from self._run_in_turns(request, stop)
            case UseDevice():
                from gpu_studio.engine.switcher.placement import use_device

                yield use_device(request.device)
            case PlaceModel():
                yield from self._place(request)
            case RunPitfall():
                from gpu_studio.engine.pitfalls.registry import run_pitfall

                yield from run_pitfall(request, stop)
            case ReadMemory() | ReadSegments() | EmptyCache():
                yield _answer_memory(request)
            case RunMemoryExperiment():
                from gpu_studio.engine.memory.cuda_memory import run_on_card

                yield from run_on_card(request, stop, self._sensor)
            case RunCheck():
                from gpu_studio.engine.check.check_round import CheckRound

                yield from CheckRound(
                    request, stop, sensor=self._sensor, cpu_name=self._cpu_name
                ).events()
            case _:
                message = "Stop has no answer."
                yield RequestFailed(failure=Failure(FailureKind.BAD_REQUEST, message))

    def _take_over_for(self, request: OpenOwnCode | RunWorkload | RunInTurns) -> None:
        """Give this process to a user's code if a request has one, and watch it."""
        runs = request.runs if isinstance(request, RunInTurns) else (request,)
        code = next((one.code for one in runs if one.code is not None), None)
        if code is None or self._own_prints is not None:
            return
        from gpu_studio.engine.own_code.limits import PRINTS, WATCH, take_over

        self._own_prints = PRINTS
        if self.lost is not None:
            take_over(code.path)
            WATCH.start(self.lost)

    def _run_one(
        self, request: RunWorkload, stop: threading.Event, **together: Any
    ) -> Iterator[Event | None]:
        yield from self._new_run(
            request, stop, sensor=self._sensor, cpu_name=self._cpu_name, **together
        ).events()

    def _new_run(self, request: RunWorkload, stop: threading.Event, **shared: Any) -> MeasuredRun:
        """Return a run of one workload; see `rounds.MeasuredRun` for what all runs have."""
        from gpu_studio.engine.benchmark.run import WorkloadRun

        return WorkloadRun(request, stop, **shared)

    def _run_in_turns(self, request: RunInTurns, stop: threading.Event) -> Iterator[Event]:
        from gpu_studio.engine.benchmark.race_timing import FinishLine
        from gpu_studio.engine.benchmark.rounds import TurnsClock, check_turns, in_turns

        check_turns(request)
        together = {"turns": uuid.uuid4().hex, "line": FinishLine(), "clock": TurnsClock()}
        runs = [self._run_one(run, stop, **together) for run in request.runs]
        yield from in_turns(list(map(self._guarded, request.runs, runs)))

    def _place(self, request: PlaceModel) -> Iterator[Event]:
        from gpu_studio.engine.switcher.placement import Placement

        if self._placement is None:
            self._placement = Placement()
        yield from self._placement.place(request)


def _with_whole_snippet(event: Event) -> Event:
    """Return the event with a snippet that finds the same card in the user's shell."""
    if not getattr(event, "snippet", ""):
        return event
    from gpu_studio.engine.device import complete

    return msgspec.structs.replace(event, snippet=complete(event.snippet))  # type: ignore[attr-defined]


def _answer_memory(request: ReadMemory | ReadSegments | EmptyCache) -> Event:
    from gpu_studio.engine.device import resolve
    from gpu_studio.engine.memory.caching_allocator import empty_cache, read_memory, read_segments

    match request:
        case ReadSegments():
            return read_segments(request.device)
        case EmptyCache():
            return empty_cache(request.device)
    return read_memory(resolve(request.device))


def _failure_of(error: Exception) -> Failure:
    try:
        from gpu_studio.engine.faults import failure_of
    except Exception:  # PyTorch itself cannot be imported: ImportError, OSError
        message = f"PyTorch cannot be loaded: {error}"
        if family_of(message) is Family.RUNTIME:
            message += _MISSING_ON_WINDOWS
        return Failure(FailureKind.INTERNAL, message, fatal=True)
    return failure_of(error)
