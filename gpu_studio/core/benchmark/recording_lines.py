"""Runs as a recording that another PC can replay, with what makes sense there and names nobody."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.failure import Failure
from gpu_studio.core.pc.devices import short_name
from gpu_studio.core.protocol import (
    RecordingHeader,
    RunFailed,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    SamplesMeasured,
    encode_all,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpu_studio.core.benchmark.runs import Run
    from gpu_studio.core.protocol import EngineDescribed, Event


def system_name() -> str:
    """Return the operating system with its release."""
    return f"{platform.system()} {platform.release()}".strip()


class RecordedPc(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording says of the PC it is made on; neither its name nor its user's."""

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
        pc: where it is made.
        described: the engine that is recorded.
        recorded_at: now, in ISO 8601.
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
    """Return an engine's account without what only its own PC needs, or what would name it.

    Args:
        described: all that it tells.
        workloads: the names of those that were run.
    """
    return msgspec.structs.replace(
        described,
        workloads=tuple(one for one in described.workloads if one.name in workloads),
        pid=0,
        visible_devices=None,
        allocator_configuration=None,
        models=(),
        pitfalls=(),
        snippet="",
        cards=(),
        own_table={},
    )


def recording_of(header: RecordingHeader, described: EngineDescribed, runs: Sequence[Run]) -> bytes:
    """Return runs as the content of a recording: those that began here, whatever came of them."""
    ours = [run for run in runs if is_recordable(run)]
    shown = described_for_others(described, {run.request.workload for run in ours})
    return encode_all([header, shown, *(event for run in ours for event in _events_of(run))])


def is_recordable(run: Run) -> bool:
    """Return whether a run began here; one that is a recording has a file already."""
    return run.recording is None and run.has_begun


def _events_of(run: Run) -> Iterator[Event]:
    request, result = run.request, run.result
    yield RunStarted(
        run_id=request.run_id,
        workload=request.workload,
        device=request.device,
        size=request.size,
        dtype=request.dtype,
        budget_s=request.budget_s,
        options=result.options if result else request.options,
        cache=request.cache,
        transfers=request.transfers,
        size_text=run.size_text,
        device_name=result.device_name if result else "",
    )
    if run.batches:
        yield RunPhaseChanged(
            run_id=request.run_id, phase="timing", expected_call_s=run.expected_call_s
        )
    samples_s, begin = run.series.values.tolist(), 0
    for batch in run.batches:
        yield SamplesMeasured(
            run_id=request.run_id,
            samples_s=tuple(samples_s[begin : batch.end]),
            calls_per_sample=batch.calls_per_sample,
            spent_s=batch.spent_s,
        )
        begin = batch.end
    if result is not None:
        yield result
    elif run.failure is not None:
        # A traceback has the names of somebody's folders.
        failure = Failure(run.failure.kind, run.failure.message)
        yield RunFailed(run_id=request.run_id, failure=failure)
    else:
        yield RunStopped(run_id=request.run_id, samples=begin)
