"""The contents of a recording: its header, the engine's description, and the events of runs."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core import operating_system
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.failure import Failure
from gpu_studio.core.messages.engine_messages import EngineDescribed, RecordingHeader
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    SamplesMeasured,
)
from gpu_studio.core.protocol import encode_all

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.message import Event


def system_name() -> str:
    """Return the operating system and its release."""
    return f"{operating_system.system()} {operating_system.release()}".strip()


class RecordedPc(msgspec.Struct, frozen=True, kw_only=True):
    """The PC of a recording, without its name and its user's name."""

    processor: str
    system: str
    cards: tuple[str, ...] = ()
    driver_version: str | None = None
    is_simulated: bool = False


def header_of(
    pc: RecordedPc, described: EngineDescribed, recorded_at: str, program: str
) -> RecordingHeader:
    """Return the first line of a recording.

    Args:
        pc: the PC that records.
        described: the recorded engine.
        recorded_at: the present time in ISO 8601.
        program: this program with its version.
    """
    devices = ", ".join(dict.fromkeys(pc.cards)) or pc.processor
    place = f" with {short_name(pc.processor)}" if pc.cards else ""
    return RecordingHeader(
        title=f"{short_name(devices)}{place}, {recorded_at[:16].replace('T', ' ')}",
        device_name=devices,
        driver_version=pc.driver_version,
        torch_version=described.torch_version,
        recorded_at=recorded_at,
        source=program,
        pc=f"{pc.processor}, {pc.system}",
        is_simulated=pc.is_simulated,
    )


def described_for_others(described: EngineDescribed, workloads: Collection[str]) -> EngineDescribed:
    """Return an engine's description without its private and local parts.

    Args:
        described: the complete description.
        workloads: the names of the workloads that ran.
    """
    return msgspec.structs.replace(
        described,
        workloads=tuple(one for one in described.workloads if one.name in workloads),
        pictures=tuple(one for one in described.pictures if one.name in workloads),
        pid=0,
        visible_devices=None,
        allocator_configuration=None,
        models=(),
        pitfalls=(),
        snippet="",
        cards=(),
    )


def recording_of(
    header: RecordingHeader,
    described: EngineDescribed,
    runs: Sequence[Run],
    frames: Mapping[str, Sequence[FramesOpened | FrameReady]] | None = None,
) -> bytes:
    """Return the contents of a recording of runs; only runs of this PC are included.

    Args:
        header: the first line.
        described: the engine that made the runs.
        runs: the runs.
        frames: those to keep, by the run's id (`core.race.side`); None leaves all out.
    """
    frames_by_run = frames or {}
    ours = [run for run in runs if is_recordable(run)]
    shown = described_for_others(described, {run.request.workload for run in ours})
    return encode_all(
        [header, shown, *(event for run in ours for event in _events_of(run, frames_by_run))]
    )


def is_recordable(run: Run) -> bool:
    """Return whether a run began on this PC; a replayed run already has a file."""
    return run.recording is None and run.has_begun


def _events_of(
    run: Run, frames_by_run: Mapping[str, Sequence[FramesOpened | FrameReady]]
) -> Iterator[Event]:
    request, result = run.request, run.result
    frames = deque(frames_by_run.get(request.run_id, ()))
    yield RunStarted(
        run_id=request.run_id,
        **request.settings | (result.parameters if result else {}),
        size_text=run.size_text,
        device_name=result.device_name if result else "",
    )
    if run.batches:
        yield RunPhaseChanged(
            run_id=request.run_id, phase="timing", expected_call_s=run.expected_call_s
        )
    samples_s, begin = run.series.values.tolist(), 0
    for batch in run.batches:
        yield from _frames_before(batch.spent_s, frames)
        yield SamplesMeasured(
            run_id=request.run_id,
            samples_s=tuple(samples_s[begin : batch.end]),
            calls_per_sample=batch.calls_per_sample,
            spent_s=batch.spent_s,
            ended_s=batch.end_s if run.is_clocked else None,
            round_number=batch.round_number,
        )
        begin = batch.end
    yield from frames
    if result is not None:
        yield result
    elif run.failure is not None:
        # A traceback contains private folder names.
        failure = Failure(run.failure.kind, run.failure.message)
        yield RunFailed(run_id=request.run_id, failure=failure)
    else:
        yield RunStopped(run_id=request.run_id, samples=begin)


def _frames_before(
    spent_s: float, frames: deque[FramesOpened | FrameReady]
) -> Iterator[FramesOpened | FrameReady]:
    """Take the frames from before a moment: a replay shows them when they were shown first."""
    while frames and (isinstance(frames[0], FramesOpened) or frames[0].elapsed_s < spent_s):
        yield frames.popleft()
