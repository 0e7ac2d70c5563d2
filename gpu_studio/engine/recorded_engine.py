"""An engine that replays the answers of another: the demo, the overlay, the test fixture.

Every replayed answer says that it is a recording, and of which device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.engine import InProcessEngine
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed, RequestFailed
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    RunFinished,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.benchmark.recording import RecordedRun, Recording
    from gpu_studio.core.messages.message import Event, Request


class RecordedEngine(InProcessEngine):
    """Replays a recording; satisfies `core.engine.Engine`.

    A run that was recorded several times is replayed in the recorded order.

    Args:
        recording: the recording to replay.
        speed: the factor by which the replay is faster; infinity does not wait at all.
    """

    def __init__(self, recording: Recording, *, speed: float = 1.0) -> None:
        super().__init__()
        self._recording = recording
        self._speed = speed
        self._replayed: dict[int, int] = {}

    def run(self, request: Request) -> Iterator[Event]:
        """Yield the recorded engine's answer to the same request, marked as recorded."""
        self._stop.clear()
        match request:
            case DescribeEngine():
                yield self._described()
            case RunWorkload():
                yield from self._replay(request)
            case _:
                yield self._not_recorded("The recording does not contain this.")

    def _described(self) -> EngineDescribed:
        header = self._recording.header
        described = self._recording.described or EngineDescribed(
            pid=0, torch_version=header.torch_version
        )
        return msgspec.structs.replace(described, recording=self._recording.label)

    def _replay(self, request: RunWorkload) -> Iterator[Event]:
        recorded = self._next_of(request)
        if recorded is None:
            known = ", ".join(
                f"{run.request.workload} {run.request.size} {run.request.dtype} on "
                f"{run.request.device}"
                for run in self._recording.runs
            )
            yield self._not_recorded(f"The recording does not contain this run. It has: {known}.")
            return
        spent_s, samples = 0.0, 0
        shows = request.showing is not None and request.showing.frames
        for event in recorded.events:
            if isinstance(event, (FramesOpened, FrameReady)) and not shows:
                continue
            if isinstance(event, SamplesMeasured):
                if self._stop.wait(max(event.spent_s - spent_s, 0.0) / self._speed):
                    yield RunStopped(run_id=request.run_id, samples=samples)
                    return
                spent_s, samples = event.spent_s, samples + len(event.samples_s)
            if isinstance(event, (RunStarted, RunFinished)):
                # A recording of a recording still names the first device.
                label = event.recording or self._recording.label
                event = msgspec.structs.replace(event, recording=label)
            yield msgspec.structs.replace(event, run_id=request.run_id)

    def _next_of(self, request: RunWorkload) -> RecordedRun | None:
        """Return the next recorded run with these parameters; after the last, the first again."""
        wanted = self._parameters(request)
        alike = [
            number
            for number, run in enumerate(self._recording.runs)
            if self._parameters(run.request) == wanted
        ]
        if not alike:
            return None
        count = self._replayed.get(alike[0], 0)
        self._replayed[alike[0]] = count + 1
        return self._recording.runs[alike[count % len(alike)]]

    def _parameters(self, run: RunWorkload) -> dict[str, object]:
        """Return the parameters that identify a run, including the defaults of omitted options."""
        described = self._recording.described
        options = {
            option.name: option.values[0]
            for workload in (described.workloads if described else ())
            if workload.name == run.workload
            for option in workload.options
            if option.values
        }
        return {**run.parameters, "options": options | run.options}

    @staticmethod
    def _not_recorded(message: str) -> RequestFailed:
        return RequestFailed(failure=Failure(FailureKind.NOT_RECORDED, message))
