"""A run of a recording, and the checks that its events pass: nothing in a file is believed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import (
    check_result,
    check_samples,
    check_texts,
    check_way,
    clean_name,
    refused,
)
from gpu_studio.core.device_name import address_at, address_there, pc_of
from gpu_studio.core.engine import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import LONGEST_S
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    SQUARE,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.other_pc import name_trouble
from gpu_studio.core.packed_frame import MOST_FRAMES, MOST_FRAMES_OF_RUN, thinned, unpack_rows
from gpu_studio.core.tensors import LARGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu_studio.core.messages.message import Event

_MOST_RUNS = 1000
_DEVICE = re.compile(r"cpu|cuda:[0-9]{1,3}")
_ENDS = (RunFinished, RunStopped, RunFailed)
_RunEvent = (
    RunPhaseChanged
    | SamplesMeasured
    | FramesOpened
    | FrameReady
    | RunFinished
    | RunStopped
    | RunFailed
)
# An older start does not say whether its run is sustained, and has not all workload options.
_ONLY_IN_RESULTS = ("options", "sustained")
_CUT_OFF = Failure(FailureKind.NOT_RECORDED, "The recording ends in the middle of this run.")


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a recording: its events from its `RunStarted` to its last event.

    ``device_name`` is the device of the run, empty if unknown.
    """

    request: RunWorkload
    device_name: str
    events: tuple[Event, ...]

    @property
    def result(self) -> RunFinished | None:
        """The result; None if the run was stopped, failed or cut off."""
        last = self.events[-1]
        return last if isinstance(last, RunFinished) else None

    @property
    def size_text(self) -> str:
        """The format of its workload's sizes."""
        first = self.events[0]
        return first.size_text if isinstance(first, RunStarted) else SQUARE

    @property
    def samples_s(self) -> list[float]:
        """All its samples, in seconds per call."""
        batches = (event for event in self.events if isinstance(event, SamplesMeasured))
        return [sample_s for batch in batches for sample_s in batch.samples_s]

    @property
    def spent_s(self) -> float:
        """The time of its timed part."""
        return max((e.spent_s for e in self.events if isinstance(e, SamplesMeasured)), default=0.0)


class _RunOfEvents:
    """The events of one run so far, with the last ones of the kinds that have an order."""

    def __init__(self, started: RunStarted) -> None:
        self.started = started
        self.events: list[Event] = [started]
        self.opened: FramesOpened | None = None
        self.batch: SamplesMeasured | None = None
        self.frames: list[FrameReady] = []


class RunsOfEvents:
    """Groups the events by run; an engine makes one run after another, or several for show.

    Args:
        is_over: returns whether the runs are no longer needed.
    """

    def __init__(self, is_over: Callable[[], bool] = lambda: False) -> None:
        self._is_over = is_over
        self._runs: list[_RunOfEvents] = []
        self._open: dict[str, _RunOfEvents] = {}
        self._frames = 0
        self.results: list[RunFinished] = []

    def add(self, event: Event, number: int) -> None:
        """Add the event of a line; events that belong to no run are ignored.

        Raises:
            StudioError: the event belongs to another run, or is invalid.
        """
        if isinstance(event, RunStarted):
            self._begin(event)
        elif isinstance(event, (EngineEnded, RequestFailed)):
            self._end_all(_failure_of(event))
        elif isinstance(event, _RunEvent):
            if event.run_id not in self._open:
                raise refused(f"its line {number} belongs to a run that did not begin")
            self._add_to_run(event, self._open[event.run_id])

    def end(self) -> bool:
        """End the unfinished runs; return whether there were any."""
        were_open = bool(self._open)
        self._end_all(_CUT_OFF)
        return were_open

    def runs(self) -> Iterator[RecordedRun]:
        """Yield the runs; unfinished runs get their device's name from the others."""
        names = {result.device: result.device_name for result in self.results}
        for run in self._runs:
            started, (_, *rest) = run.started, run.events
            name = started.device_name or names.get(started.device, "")
            yield RecordedRun(
                request=_request_of(started, run.events[-1]),
                device_name=name,
                events=(msgspec.structs.replace(started, device_name=name), *rest),
            )

    def _begin(self, event: RunStarted) -> None:
        if len(self._runs) == _MOST_RUNS:
            raise refused(f"it has more than {_MOST_RUNS} runs")
        others = {run.started.turns for run in self._open.values()}
        if event.run_id in self._open or not event.turns or others - {event.turns}:
            self._end_all(_CUT_OFF)
        self._open[event.run_id] = _RunOfEvents(_checked_start(event))
        self._runs.append(self._open[event.run_id])

    def _add_to_run(self, event: _RunEvent, run: _RunOfEvents) -> None:
        match event:
            case SamplesMeasured():
                _check_batch(event, run.batch)
                run.batch = event
            case FramesOpened():
                if run.opened is not None:
                    raise refused("it has a run with two sizes of frames")
                run.opened = event
            case FrameReady(picture=None):
                return  # it was left out
            case FrameReady():
                self._frames += 1
                if self._frames > MOST_FRAMES:
                    raise refused(f"it has more than {MOST_FRAMES} frames")
                _check_order(event, run)
                run.frames.append(event)
            case RunFinished():
                event = _checked_end(event, run)
                self.results.append(event)
            case RunFailed():
                event = RunFailed(run_id=event.run_id, failure=_failure_of(event))
            case RunPhaseChanged():
                event = msgspec.structs.replace(event, phase=clean_name(event.phase))
        run.events.append(event)
        if isinstance(event, _ENDS):
            self._close(run)

    def _end_all(self, failure: Failure) -> None:
        for run in [*self._open.values()]:
            run.events.append(RunFailed(run_id=run.started.run_id, failure=failure))
            self._close(run)

    def _close(self, run: _RunOfEvents) -> None:
        """Keep so many frames of a run as are shown, and see that these are whole."""
        del self._open[run.started.run_id]
        few = thinned(run.frames, MOST_FRAMES_OF_RUN)
        for frame in few:
            if self._is_over():
                raise refused("its reading was stopped")
            _check_frame(frame, run.opened)
        if len(few) < len(run.frames):
            shown = {id(frame) for frame in few}
            run.events = [
                one for one in run.events if not isinstance(one, FrameReady) or id(one) in shown
            ]
        run.frames = []


def _checked_end(event: RunFinished, run: _RunOfEvents) -> RunFinished:
    """Return a result after checking that it matches the run's own samples."""
    import numpy as np  # 80 ms

    result, started = check_result(event), run.started
    ends = {name: getattr(result, name) for name in _ONLY_IN_RESULTS}
    if result.parameters != {**started.parameters, **ends}:
        raise refused("it has a result that belongs to another run")
    if not result.device_name:
        raise refused("it has a result without its device")
    batches = (e.samples_s for e in run.events if isinstance(e, SamplesMeasured))
    values = [sample_s for batch in batches for sample_s in batch]
    check_samples(result, np.array(values, "<f8").tobytes())
    if result.outcome is not None:
        check_way([frame.elapsed_s for frame in run.frames], result.outcome.seconds)
    return result


def _is_device(address: str) -> bool:
    """Return whether this is a device's name, which may begin with that of another PC."""
    pc, there = pc_of(address), address_there(address)
    is_named = not pc or not name_trouble(pc)
    return is_named and address == address_at(pc, there) and _DEVICE.fullmatch(there) is not None


def _checked_start(event: RunStarted) -> RunStarted:
    """Return a run's start without its snippet, because foreign code is not shown."""
    if not _is_device(event.device):
        raise refused("it has a device with an invalid address")
    if not 1 <= event.size <= LARGEST_SIZE or not 0 < event.timed_s <= LONGEST_S:
        raise refused("it has an invalid size or time budget")
    return check_texts(msgspec.structs.replace(event, snippet=""))


def _check_order(event: FrameReady, run: _RunOfEvents) -> None:
    if run.frames and event.elapsed_s < run.frames[-1].elapsed_s:
        raise refused("its frames are out of order")
    if run.opened is None:
        raise refused("it has a frame without a size")


def _check_frame(frame: FrameReady, opened: FramesOpened | None) -> None:
    """Raise `StudioError` unless a frame can be unpacked to its size."""
    assert opened is not None
    assert frame.picture is not None
    if unpack_rows(frame.picture, opened.width, opened.height) is None:
        raise refused("it has a damaged frame")


def _check_batch(event: SamplesMeasured, before: SamplesMeasured | None) -> None:
    if before is not None and event.spent_s < before.spent_s:
        raise refused("its samples are out of order")


def _failure_of(event: EngineEnded | RequestFailed | RunFailed) -> Failure:
    """Return a recorded run's failure, which must not end the engine that replays it."""
    if isinstance(event, EngineEnded):
        return Failure(FailureKind.INTERNAL, describe_exit(event.exit_code))
    kind, message = event.failure.kind, clean_name(event.failure.message)
    return Failure(FailureKind.INTERNAL if kind is FailureKind.ENGINE_ENDED else kind, message)


def _request_of(started: RunStarted, end: Event) -> RunWorkload:
    """Return the request of a run; an older start does not say whether it was sustained."""
    is_sustained = end.sustained if isinstance(end, RunFinished) else started.sustained
    return RunWorkload(run_id=started.run_id, **{**started.settings, "sustained": is_sustained})
