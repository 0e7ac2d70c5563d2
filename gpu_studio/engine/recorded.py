"""An engine that replays what another one answered: the demo, the ghost, the test fixture.

A recording is a text file: a `RecordingHeader`, then the events of one engine as they came, one
JSON object a line. Everything that is replayed says that it is a recording.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.protocol import (
    DescribeEngine,
    EngineDescribed,
    Event,
    RecordingHeader,
    Request,
    RequestFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
    decode_event,
    is_last,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LARGEST_FILE = 64 << 20


class RecordingError(ValueError):
    """A file that is no recording, with a sentence that says why."""


def read_recording(path: Path) -> tuple[RecordingHeader, list[Event]]:
    """Return the header and the events of a recording.

    Raises:
        RecordingError: for a file that is missing, too large, or no recording.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise RecordingError(f"{path.name} is too large for a recording (over 64 MiB).")
        lines = path.read_bytes().splitlines()
        header = msgspec.json.decode(lines[0] if lines else b"", type=RecordingHeader)
        return header, [decode_event(line) for line in lines[1:] if line.strip()]
    except OSError as error:
        raise RecordingError(f"{path.name} cannot be read: {error.strerror}.") from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordingError(f"{path.name} is not a recording of this program.") from error


class RecordedEngine:
    """Replays a recording; satisfies `core.engine.Engine`.

    Args:
        path: the recording.
        speed: how many times faster than it happened; infinity waits for nothing.
    """

    def __init__(self, path: Path, *, speed: float = 1.0) -> None:
        self._header, self._events = read_recording(path)
        self._speed = speed
        self._stop = threading.Event()

    def run(self, request: Request) -> Iterator[Event]:
        """Yield what the recorded engine answered to the same request, marked as recorded."""
        self._stop.clear()
        match request:
            case DescribeEngine():
                yield from self._described()
            case RunWorkload():
                yield from self._replay(request)
            case _:
                yield self._not_recorded("That was not recorded.")

    def stop(self) -> None:
        """End the replay."""
        self._stop.set()

    def abandon(self) -> None:
        """End the replay."""
        self._stop.set()

    def close(self) -> None:
        """End the replay."""
        self._stop.set()

    def _described(self) -> Iterator[Event]:
        for event in self._events:
            if isinstance(event, EngineDescribed):
                yield msgspec.structs.replace(event, recording=self._header.title)
                return
        yield self._not_recorded("The recording does not say what recorded it.")

    def _replay(self, request: RunWorkload) -> Iterator[Event]:
        events = self._events_of(request)
        if not events:
            known = ", ".join(
                f"{e.workload} {e.size} {e.dtype} on {e.device}"
                for e in self._events
                if isinstance(e, RunStarted)
            )
            yield self._not_recorded(f"This run was not recorded. The recording has: {known}.")
            return
        spent_s, samples = 0.0, 0
        for event in events:
            if isinstance(event, SamplesMeasured):
                if self._stop.wait(max(event.spent_s - spent_s, 0.0) / self._speed):
                    yield RunStopped(run_id=request.run_id, samples=samples)
                    return
                spent_s, samples = event.spent_s, samples + len(event.samples_s)
            if isinstance(event, (RunStarted, RunFinished)):
                event = msgspec.structs.replace(event, recording=self._header.title)
            yield msgspec.structs.replace(event, run_id=request.run_id)

    def _events_of(self, request: RunWorkload) -> list[Event]:
        """Return the events of the first recorded run with the same parameters."""
        wanted = self._parameters(request)
        run_id = next(
            (
                event.run_id
                for event in self._events
                if isinstance(event, RunStarted) and self._parameters(event) == wanted
            ),
            None,
        )
        if run_id is None:
            return []
        events: list[Event] = []
        for event in self._events:
            if getattr(event, "run_id", None) == run_id:
                events.append(event)
                if is_last(event, request):
                    break
        return events

    def _parameters(self, run: RunWorkload | RunStarted) -> tuple[object, ...]:
        """Return what makes two runs the same, with the defaults of options that were left out."""
        options = {
            option.name: option.values[0]
            for event in self._events
            if isinstance(event, EngineDescribed)
            for workload in event.workloads
            if workload.name == run.workload
            for option in workload.options
        }
        return (
            (run.workload, run.device, run.size, run.dtype, run.cache, run.transfers),
            options | run.options,
        )

    @staticmethod
    def _not_recorded(message: str) -> RequestFailed:
        return RequestFailed(failure=Failure(FailureKind.NOT_RECORDED, message))
