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
from gpu_studio.core.packed_frame import unpack_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.recording import Recording
    from gpu_studio.core.messages.message import Event, Request
    from gpu_studio.engine.benchmark.frames import FrameFile, FrameFiles


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
        self._frames: FrameFiles | None = None

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

    def close(self) -> None:
        """End the running replay, and remove the file of its frames; see `Engine.close`."""
        super().close()
        if self._frames is not None:
            self._frames.close()

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
        file: FrameFile | None = None
        for event in recorded.events:
            if isinstance(event, FramesOpened):
                file = self._frame_file(event, request)
                if file is not None:
                    opened = msgspec.structs.replace(event, path=str(file.path))
                    yield msgspec.structs.replace(opened, run_id=request.run_id)
                continue
            if isinstance(event, FrameReady):
                if file is not None and (ready := _shown(event, file)) is not None:
                    yield msgspec.structs.replace(ready, run_id=request.run_id)
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

    def _frame_file(self, opened: FramesOpened, request: RunWorkload) -> FrameFile | None:
        """Return a file for recorded frames; None if the request wants none."""
        if request.showing is None or not request.showing.frames:
            return None
        if self._frames is None:
            from gpu_studio.engine.benchmark.frames import FrameFiles

            self._frames = FrameFiles()
        return self._frames.open(opened.width, opened.height)

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


def _shown(ready: FrameReady, file: FrameFile) -> FrameReady | None:
    """Write a recorded frame as an engine does; return its message, None if it does not fit."""
    picture = None
    if ready.picture is not None:
        picture = unpack_frame(ready.picture, file.width, file.height)
    number = file.add(picture) if picture is not None else None
    return None if number is None else msgspec.structs.replace(ready, number=number, picture=None)
