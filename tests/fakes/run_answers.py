"""What an engine says of a run, from its beginning to its result."""

from collections.abc import Iterator
from typing import Any

import msgspec

from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    CeilingShare,
    RunConditions,
    RunDetails,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunTimes,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.statistics import interval_of_rounds, summarize


def call_time_s(request: RunWorkload) -> float:
    """Return the invented time of one call: a card starts slowly and is ten times as fast."""
    work_s = request.size**2 * 1e-9
    return work_s if request.device == "cpu" else 200e-6 + work_s / 10


def started(request: RunWorkload, **changes: Any) -> RunStarted:
    plain = RunStarted(
        run_id=request.run_id, workload=request.workload, device=request.device,
        size=request.size, dtype=request.dtype, budget_s=request.budget_s,
        sustained=request.sustained,
        snippet=f"# {request.workload} {request.size} {request.dtype} {request.device}\n",
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def samples_of(request: RunWorkload, count: int = 40) -> tuple[float, ...]:
    """Return invented samples around `call_time_s`, all different."""
    return tuple(call_time_s(request) * (1 + 0.001 * ((7 * i) % 11 - 5)) for i in range(count))


def batch(
    request: RunWorkload,
    samples_s: tuple[float, ...],
    spent_s: float,
    calls: int = 4,
    **clock: Any,
) -> SamplesMeasured:
    return SamplesMeasured(
        run_id=request.run_id, samples_s=samples_s, calls_per_sample=calls, spent_s=spent_s, **clock
    )


_DEVICE_NAMES = {
    "cpu": "Ryzen 7 5700G",
    "cuda:0": "NVIDIA GeForce GT 1030",
    "cuda:1": "NVIDIA GeForce RTX 3060",
}


def finished(request: RunWorkload, samples_s: tuple[float, ...], **changes: Any) -> RunFinished:
    summary = summarize(samples_s)
    assert summary is not None
    unit = "B/s" if request.workload == "elementwise" else "FLOP/s"
    plain = RunFinished(
        run_id=request.run_id, workload=request.workload, size=request.size, dtype=request.dtype,
        device=request.device,
        device_name=_DEVICE_NAMES.get(request.device, request.device),
        median_s=summary.median_s, iqr_s=summary.iqr_s, ci95_s=interval_of_rounds(samples_s),
        samples=summary.samples, calls_per_sample=4,
        throughput=2.0 * request.size**2 / summary.median_s, throughput_unit=unit,
        times=RunTimes(
            first_call_s=2 * summary.median_s, warm_up_s=0.3, elapsed_s=request.budget_s
        ),
        conditions=RunConditions(
            throttled=None if request.device == "cpu" else False, cpu_threads=4,
            torch_version="2.13.0",
        ),
        details=RunDetails(bytes_per_call=8.0 * request.size**2),
        verified=True, verification="matches float64 on the CPU",
        options=request.options, cache=request.cache,
        transfers=request.transfers, sustained=request.sustained,
    )  # fmt: skip
    return changed(plain, **changes)


_REACHED = {"share_of_ceiling": "share", "ceiling": "ceiling", "limit": "limit"}


def changed(result: RunFinished, **changes: Any) -> RunFinished:
    """Return a result with other fields, each by its name, also if it is of a part."""
    replace = msgspec.structs.replace
    for name in ("times", "conditions", "details"):
        part = getattr(result, name)
        own = {field: changes.pop(field) for field in part.__struct_fields__ if field in changes}
        result = replace(result, **{name: replace(part, **own)})
    reached = {new: changes.pop(old) for old, new in _REACHED.items() if old in changes}
    if reached:
        whole = replace(result.reached or CeilingShare(share=0.0), **reached)
        changes["reached"] = whole if whole.share is not None else None
    return replace(result, **changes)


def in_turns(
    result: RunFinished, turns: str = "turns", rounds_s: tuple[float, ...] = ()
) -> RunFinished:
    """Return a result of a run that took turns with others; by default all rounds are alike."""
    rounds_s = rounds_s or (result.median_s,) * 12
    return msgspec.structs.replace(result, turns=turns, rounds_s=rounds_s)


def kept_busy(median_s: float) -> dict[str, Any]:
    """Return the changes of a result whose rounds have no winner, beside other programs."""
    rounds_s = tuple(median_s * factor for factor in (0.2, 4.0, 0.5, 3.0, 0.3, 2.0) * 2)
    return {"other_processes": True, "rounds_s": rounds_s}


def run_events(request: RunWorkload, **changes: Any) -> Iterator[Event]:
    """Yield a whole run; ``changes`` are of its result."""
    samples_s = samples_of(request)
    half = len(samples_s) // 2
    yield started(request)
    yield RunPhaseChanged(run_id=request.run_id, phase="set-up")
    yield RunPhaseChanged(
        run_id=request.run_id, phase="warm-up", expected_call_s=call_time_s(request)
    )
    yield RunPhaseChanged(run_id=request.run_id, phase="timing")
    yield batch(request, samples_s[:half], request.budget_s / 2)
    yield batch(request, samples_s[half:], request.budget_s)
    yield finished(request, samples_s, **changes)
