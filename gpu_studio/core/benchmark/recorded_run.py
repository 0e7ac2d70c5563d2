"""A run of a recording, and the checks that its events pass: nothing in a file is believed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import (
    SHORTEST_S,
    check_result,
    check_samples,
    check_texts,
    check_way,
    clean_name,
    refused,
)
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.message import LARGEST_COUNT, LONGEST_S, Event
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
from gpu_studio.core.packed_frame import unpack_frame
from gpu_studio.core.tensors import LARGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_MOST_RUNS = 1000
_DEVICE = re.compile(r"cpu|cuda:[0-9]{1,3}")
_MOST_FRAMES = 2000
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


class RunsOfEvents:
    """Groups the events by run; an engine makes one run after another, or several for show."""

    def __init__(self) -> None:
        self._events: list[list[Event]] = []
        self._open: dict[str, list[Event]] = {}
        self._frames = 0
        self.results: list[RunFinished] = []

    @property
    def has_begun(self) -> bool:
        """Whether there was any run."""
        return bool(self._events)

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
        for events in self._events:
            started = _start_of(events)
            name = started.device_name or names.get(started.device, "")
            yield RecordedRun(
                request=_request_of(started, events[-1]),
                device_name=name,
                events=(msgspec.structs.replace(started, device_name=name), *events[1:]),
            )

    def _begin(self, event: RunStarted) -> None:
        if len(self._events) == _MOST_RUNS:
            raise refused(f"it has more than {_MOST_RUNS} runs")
        others = {_start_of(events).turns for events in self._open.values()}
        if event.run_id in self._open or not event.turns or others - {event.turns}:
            self._end_all(_CUT_OFF)
        self._open[event.run_id] = [_checked_start(event)]
        self._events.append(self._open[event.run_id])

    def _add_to_run(self, event: _RunEvent, events: list[Event]) -> None:
        match event:
            case SamplesMeasured():
                _check_batch(event, events)
            case FramesOpened():
                event = _checked_opening(event, events)
            case FrameReady(picture=None):
                return  # of an engine at work; its file is gone
            case FrameReady():
                self._frames += 1
                if self._frames > _MOST_FRAMES:
                    raise refused(f"it has more than {_MOST_FRAMES} frames")
                _check_frame(event, events)
            case RunFinished():
                event = _checked_end(event, events)
                self.results.append(event)
            case RunFailed():
                event = RunFailed(run_id=event.run_id, failure=_failure_of(event))
            case RunPhaseChanged():
                event = msgspec.structs.replace(event, phase=clean_name(event.phase))
        events.append(event)
        if isinstance(event, _ENDS):
            del self._open[event.run_id]

    def _end_all(self, failure: Failure) -> None:
        for run_id, events in self._open.items():
            events.append(RunFailed(run_id=run_id, failure=failure))
        self._open.clear()


def _start_of(events: Sequence[Event]) -> RunStarted:
    started = events[0]
    assert isinstance(started, RunStarted)
    return started


def _checked_end(event: RunFinished, events: Sequence[Event]) -> RunFinished:
    """Return a result after checking that it matches the run's own samples."""
    import numpy as np  # 80 ms

    result, started = check_result(event), _start_of(events)
    ends = {name: getattr(result, name) for name in _ONLY_IN_RESULTS}
    if result.parameters != {**started.parameters, **ends}:
        raise refused("it has a result that belongs to another run")
    if not result.device_name:
        raise refused("it has a result without its device")
    batches = (e.samples_s for e in events if isinstance(e, SamplesMeasured))
    values = [sample_s for batch in batches for sample_s in batch]
    check_samples(result, np.array(values, "<f8").tobytes())
    if result.outcome is not None:
        frames_s = [event.elapsed_s for event in events if isinstance(event, FrameReady)]
        check_way(frames_s, result.outcome.seconds)
    return result


def _checked_start(event: RunStarted) -> RunStarted:
    """Return a run's start without its snippet, because foreign code is not shown."""
    if _DEVICE.fullmatch(event.device) is None:
        raise refused("it has a device with an invalid address")
    if not 1 <= event.size <= LARGEST_SIZE or not 0 < event.budget_s <= LONGEST_S:
        raise refused("it has an invalid size or time budget")
    return check_texts(msgspec.structs.replace(event, snippet=""))


def _checked_opening(event: FramesOpened, events: Sequence[Event]) -> FramesOpened:
    """Return a run's announcement of frames without the path of another PC's file."""
    if any(isinstance(one, FramesOpened) for one in events):
        raise refused("it has a run with two sizes of frames")
    return msgspec.structs.replace(event, path="")


def _check_frame(event: FrameReady, events: Sequence[Event]) -> None:
    opened = next((one for one in events if isinstance(one, FramesOpened)), None)
    before = next((one for one in reversed(events) if isinstance(one, FrameReady)), None)
    if before is not None and event.elapsed_s < before.elapsed_s:
        raise refused("its frames are out of order")
    if (
        opened is None
        or event.picture is None
        or unpack_frame(event.picture, opened.width, opened.height) is None
    ):
        raise refused("it has a damaged frame")


def _check_batch(event: SamplesMeasured, events: Sequence[Event]) -> None:
    before = next((one for one in reversed(events) if isinstance(one, SamplesMeasured)), None)
    since_s = before.spent_s if before is not None else 0.0
    is_counted = 1 <= event.calls_per_sample <= LARGEST_COUNT
    if not since_s <= event.spent_s <= LONGEST_S or not is_counted:
        raise refused("its samples are out of order")
    if not all(SHORTEST_S <= sample_s <= LONGEST_S for sample_s in event.samples_s):
        raise refused("it has a sample that is not a time")


def _failure_of(event: EngineEnded | RequestFailed | RunFailed) -> Failure:
    """Return a recorded run's failure, which must not end the engine that replays it."""
    if isinstance(event, EngineEnded):
        return Failure(FailureKind.INTERNAL, describe_exit(event.exit_code))
    kind, message = event.failure.kind, clean_name(event.failure.message)
    return Failure(FailureKind.INTERNAL if kind is FailureKind.ENGINE_ENDED else kind, message)


def _request_of(started: RunStarted, end: Event) -> RunWorkload:
    """Return the request of a run; an older start does not say whether it was sustained."""
    is_sustained = end.sustained if isinstance(end, RunFinished) else started.sustained
    return RunWorkload(
        run_id=started.run_id,
        budget_s=started.budget_s,
        **{**started.parameters, "sustained": is_sustained},
    )
