"""The runs of a recording, put together from their events and checked as all from outside."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import (
    check_result,
    check_samples,
    check_texts,
    clean_name,
    refused,
)
from gpu_studio.core.engine_end import describe_exit
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import SQUARE
from gpu_studio.core.protocol import (
    EngineEnded,
    Event,
    RequestFailed,
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.tensors import LARGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_RUNS = 1000
_LONGEST_S = 1e6
_DEVICE = re.compile(r"cpu|cuda:[0-9]{1,3}")
_RUN_EVENTS = (RunPhaseChanged, SamplesMeasured, RunFinished, RunStopped, RunFailed)
_ENDS = (RunFinished, RunStopped, RunFailed)
_SAME = ("workload", "device", "size", "dtype", "cache", "transfers")
_CUT_OFF = Failure(FailureKind.NOT_RECORDED, "The recording ends in the middle of this run.")


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a recording; its events begin with a `RunStarted` and end with its last event.

    ``device_name`` is what it ran on, empty where nobody told.
    """

    request: RunWorkload
    device_name: str
    events: tuple[Event, ...]

    @property
    def result(self) -> RunFinished | None:
        """The result; None of a run that was stopped, failed or cut off."""
        last = self.events[-1]
        return last if isinstance(last, RunFinished) else None

    @property
    def size_text(self) -> str:
        """How its workload writes a size."""
        first = self.events[0]
        return first.size_text if isinstance(first, RunStarted) else SQUARE

    @property
    def samples_s(self) -> list[float]:
        """All its samples, seconds a call."""
        batches = (event for event in self.events if isinstance(event, SamplesMeasured))
        return [sample_s for batch in batches for sample_s in batch.samples_s]

    @property
    def spent_s(self) -> float:
        """How long it was timed."""
        return max((e.spent_s for e in self.events if isinstance(e, SamplesMeasured)), default=0.0)


class RunsOfEvents:
    """Puts the events of each run together; an engine makes one run after the other."""

    def __init__(self) -> None:
        self._events: list[list[Event]] = []
        self.results: list[RunFinished] = []
        self._is_open = False

    @property
    def has_begun(self) -> bool:
        """Whether there was a run."""
        return bool(self._events)

    def take(self, event: Event, number: int) -> None:
        """Take over the event of a line; what is about no run is left out.

        Raises:
            StudioError: it is about another run, or makes no sense.
        """
        if isinstance(event, RunStarted):
            self.end()
            self._begin(event)
        elif isinstance(event, (EngineEnded, RequestFailed)):
            if self._is_open:
                self._close(RunFailed(run_id=self._started.run_id, failure=_failure_of(event)))
        elif isinstance(event, _RUN_EVENTS):
            if not self._is_open or event.run_id != self._started.run_id:
                raise refused(f"its line {number} is of a run that did not begin")
            self._take(event)

    def end(self) -> bool:
        """End a run that has no end; return whether there was one."""
        was_open = self._is_open
        if was_open:
            self._close(RunFailed(run_id=self._started.run_id, failure=_CUT_OFF))
        return was_open

    def runs(self) -> Iterator[RecordedRun]:
        """Yield the runs; those that did not finish have their device's name from the others."""
        names = {result.device: result.device_name for result in self.results}
        for events in self._events:
            started = events[0]
            assert isinstance(started, RunStarted)
            name = started.device_name or names.get(started.device, "")
            yield RecordedRun(
                request=_request_of(started),
                device_name=name,
                events=(msgspec.structs.replace(started, device_name=name), *events[1:]),
            )

    @property
    def _started(self) -> RunStarted:
        started = self._events[-1][0]
        assert isinstance(started, RunStarted)
        return started

    def _begin(self, event: RunStarted) -> None:
        if len(self._events) == _MOST_RUNS:
            raise refused(f"it has more than {_MOST_RUNS} runs")
        self._events.append([_checked_start(event)])
        self._is_open = True

    def _take(self, event: Event) -> None:
        events = self._events[-1]
        match event:
            case SamplesMeasured():
                _check_batch(event, events[-1])
            case RunFinished():
                event = self._checked_end(event)
                self.results.append(event)
            case RunFailed():
                event = RunFailed(run_id=event.run_id, failure=_failure_of(event))
            case RunPhaseChanged():
                event = msgspec.structs.replace(event, phase=clean_name(event.phase))
        if isinstance(event, _ENDS):
            self._close(event)
        else:
            events.append(event)

    def _close(self, event: Event) -> None:
        self._events[-1].append(event)
        self._is_open = False

    def _checked_end(self, event: RunFinished) -> RunFinished:
        """Return a result that is the one of the run's own samples."""
        import numpy as np

        result, started = check_result(event), self._started
        if any(getattr(result, name) != getattr(started, name) for name in _SAME):
            raise refused("a result in it is of another run than the one that ends with it")
        if not result.device_name:
            raise refused("a result in it does not say on which device it was made")
        batches = (e.samples_s for e in self._events[-1] if isinstance(e, SamplesMeasured))
        values = [sample_s for batch in batches for sample_s in batch]
        check_samples(result, np.array(values, "<f8").tobytes())
        return result


def _checked_start(event: RunStarted) -> RunStarted:
    """Return how a run began, without its snippet: lines of code from elsewhere are not shown."""
    if _DEVICE.fullmatch(event.device) is None:
        raise refused("a device in it has no address of this program")
    if not 1 <= event.size <= LARGEST_SIZE or not 0 < event.budget_s <= _LONGEST_S:
        raise refused("a size or a time budget in it makes no sense")
    return check_texts(msgspec.structs.replace(event, snippet=""))


def _check_batch(event: SamplesMeasured, before: Event) -> None:
    since_s = before.spent_s if isinstance(before, SamplesMeasured) else 0.0
    if not since_s <= event.spent_s <= _LONGEST_S or event.calls_per_sample < 1:
        raise refused("its samples do not follow each other")
    if not all(math.isfinite(sample_s) and sample_s > 0 for sample_s in event.samples_s):
        raise refused("a sample in it is not a time")


def _failure_of(event: EngineEnded | RequestFailed | RunFailed) -> Failure:
    """Return why a recorded run failed; it cannot end the engine that replays it."""
    if isinstance(event, EngineEnded):
        return Failure(FailureKind.INTERNAL, describe_exit(event.exit_code))
    kind, message = event.failure.kind, clean_name(event.failure.message)
    return Failure(FailureKind.INTERNAL if kind is FailureKind.ENGINE_ENDED else kind, message)


def _request_of(started: RunStarted) -> RunWorkload:
    """Return what was asked for when a run began so."""
    return RunWorkload(
        run_id=started.run_id,
        workload=started.workload,
        device=started.device,
        size=started.size,
        dtype=started.dtype,
        budget_s=started.budget_s,
        options=started.options,
        cache=started.cache,
        transfers=started.transfers,
    )
