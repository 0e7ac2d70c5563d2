"""Make a run's result from the facts that its steps recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.ceilings import (
    ABOVE_FROM,
    MeasuredCeilings,
    share_of_ceiling,
)
from gpu_studio.core.devices.finding import DOUBT, NOT_TESTED, is_tested
from gpu_studio.core.messages.run_messages import (
    CeilingShare,
    Limit,
    RunConditions,
    RunDetails,
    RunFinished,
    RunTimes,
)
from gpu_studio.core.statistics import interval_of_rounds, round_medians, summarize
from gpu_studio.engine.benchmark.ceilings import ceilings_of
from gpu_studio.engine.benchmark.cold_cache import last_level_bytes
from gpu_studio.engine.benchmark.naive import explain
from gpu_studio.engine.device import accelerator_of, card_name

if TYPE_CHECKING:
    from gpu_studio.core.messages.race_messages import RaceOutcome
    from gpu_studio.core.messages.run_messages import (
        NaiveTime,
        OtherLoad,
        RunHeat,
        RunWorkload,
    )
    from gpu_studio.engine.benchmark.naive_script import NaiveAnswer
    from gpu_studio.engine.sensor import Watch
    from gpu_studio.engine.verification import Verification
    from gpu_studio.engine.workloads.case import Case, Work
    from gpu_studio.engine.workloads.workload import Workload


# A call that moves so many times the last-level cache cannot find its operands in it.
_CACHES = 4


@dataclass
class RunFacts:
    """The facts that a run's steps record, each as soon as it is known."""

    samples_s: list[float] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """The index of the first sample of each round."""
    last_round: int | None = None
    """The last round of a run that stops early, as soon as it is known."""
    round_s: float = math.inf
    """The timed part of a round."""
    spent_s: float = 0.0
    slices_s: tuple[float, ...] = ()
    """The mean seconds of a step in each slice of a race."""
    clock_mhz: float | None = None
    """The card's SM clock after the first warm-up."""
    verification: Verification | None = None
    other_load: OtherLoad | None = None
    """What other programs did on the card before this engine's load."""
    watch: Watch | None = None
    measured: MeasuredCeilings | None = None
    calls_per_sample: int = 1
    first_call_s: float = 0.0
    warm_up_s: float = 0.0
    loaded_s: float | None = None
    naive: NaiveAnswer | None = None
    peak_allocated_bytes: int | None = None
    parts_s: dict[str, float] = field(default_factory=dict)
    curves: dict[str, tuple[float, ...]] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    doubts: dict[str, str] = field(default_factory=dict)
    outcome: RaceOutcome | None = None
    heat: RunHeat | None = None


def finish(
    request: RunWorkload,
    workload: Workload,
    case: Case,
    found: RunFacts,
    *,
    cpu_name: str,
    turns: str,
    elapsed_s: float,
) -> RunFinished:
    """Return the result of a run with at least one sample."""
    summary = summarize(found.samples_s)
    assert summary is not None
    assert found.verification is not None
    assert found.watch is not None
    work = workload.work(case)
    computed_in = workload.computes_in(case)
    return RunFinished(
        run_id=request.run_id,
        **{**request.parameters, "options": dict(case.options)},
        size_text=workload.description.size_text,
        device_name=_device_name(case, cpu_name),
        median_s=summary.median_s,
        iqr_s=summary.iqr_s,
        ci95_s=interval_of_rounds(found.samples_s, found.starts if len(found.starts) > 1 else ()),
        rounds_s=found.slices_s or round_medians(found.samples_s, found.starts),
        samples=summary.samples,
        calls_per_sample=found.calls_per_sample,
        throughput=work.throughput_work / summary.median_s,
        throughput_unit=workload.description.throughput_unit,
        times=RunTimes(
            first_call_s=found.first_call_s,
            warm_up_s=found.warm_up_s,
            elapsed_s=elapsed_s,
            timed_s=math.fsum(found.samples_s) * found.calls_per_sample,
        ),
        conditions=RunConditions(
            throttled=found.watch.throttled,
            power_capped=found.watch.power_capped,
            other_processes=found.other_load is not None or found.watch.other_processes,
            other_load=found.other_load,
            loaded_s=found.loaded_s,
            heat=found.heat,
            computed_in=computed_in,
            cpu_threads=torch.get_num_threads(),
            torch_version=str(torch.__version__),
        ),
        details=RunDetails(
            # The CPU needs no copies and has no driver to ask.
            parts_s=found.parts_s or ({} if case.is_on_card else {"compute": summary.median_s}),
            curves=found.curves,
            findings=found.sentences + _remarks(case, found),
            lessons=found.lessons,
            naive=_naive(found, summary.median_s, case),
            bytes_per_call=work.bytes_moved,
            peak_allocated_bytes=found.peak_allocated_bytes,
        ),
        reached=_reached(case, work, found, summary.median_s, computed_in),
        verified=found.verification.verified,
        verification=found.verification.sentence,
        doubts={**found.doubts, **_doubts_of(case.device)},
        outcome=found.outcome,
        turns=turns,
    )


def _device_name(case: Case, cpu_name: str) -> str:
    return card_name(case.device) if case.is_on_card else cpu_name


def _doubts_of(device: torch.device) -> dict[str, str]:
    """Return the doubt about a kind of card on which nobody has run this program."""
    return {} if is_tested(accelerator_of(device).maker) else {DOUBT: NOT_TESTED}


def _reached(
    case: Case, work: Work, found: RunFacts, median_s: float, computed_in: str
) -> CeilingShare | None:
    card = found.watch.card if found.watch else None
    ceilings = ceilings_of(case, found.measured, card, computed_in)
    if ceilings is None:
        return None
    reached = share_of_ceiling(
        ceilings,
        median_s,
        operations=work.operations,
        bytes_moved=work.bytes_moved,
        link_bytes=work.link_bytes,
    )
    if reached is None or reached.limit is not Limit.MEMORY or reached.share <= ABOVE_FROM:
        return reached
    # Only a cache is faster than the memory. What fits in none disproves the ceiling.
    cache_bytes = None if case.is_on_card else last_level_bytes()
    return None if cache_bytes and work.bytes_moved > _CACHES * cache_bytes else reached


def _naive(found: RunFacts, median_s: float, case: Case) -> NaiveTime | None:
    stopwatch = found.naive.stopwatch if found.naive is not None else None
    return None if stopwatch is None else explain(stopwatch, median_s, case)


def _remarks(case: Case, found: RunFacts) -> tuple[str, ...]:
    remarks = []
    if case.transfers and not case.is_on_card:
        remarks.append(
            "The operands are already in the CPU's memory, so there is nothing to transfer: this "
            "time is only the computation."
        )
    if found.naive is not None and found.naive.stopwatch is None:
        remarks.append(f"There is no naive time: {found.naive.failure.rstrip('.')}.")
    return tuple(remarks)
