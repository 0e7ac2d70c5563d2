"""Make a run's result from the facts that its steps recorded. No torch here."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import RunConditions, RunDetails, RunFinished, RunTimes
from gpu_studio.core.statistics import interval_of_rounds, quantile, round_medians, summarize

if TYPE_CHECKING:
    from gpu_studio.core.messages.race_messages import RaceOutcome
    from gpu_studio.core.messages.run_messages import (
        CeilingShare,
        NaiveTime,
        OtherLoad,
        RunHeat,
        RunWorkload,
        WorkloadDescription,
    )
    from gpu_studio.engine.sensor import Watch
    from gpu_studio.engine.verification import Verification


@dataclass
class RunFacts:
    """The facts that a run's steps record, each as soon as it is known."""

    device_name: str = ""
    options: dict[str, str] = field(default_factory=dict)
    throughput_work: float = 0.0
    bytes_per_call: float = 0.0
    computed_in: str = ""
    cpu_threads: int | None = None
    torch_version: str = ""
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
    calls_per_sample: int = 1
    first_call_s: float | None = None
    warm_up_s: float = 0.0
    loaded_s: float | None = None
    naive: NaiveTime | None = None
    reached: CeilingShare | None = None
    peak_allocated_bytes: int | None = None
    parts_s: dict[str, float] = field(default_factory=dict)
    curves: dict[str, tuple[float, ...]] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    doubts: dict[str, str] = field(default_factory=dict)
    outcome: RaceOutcome | None = None
    heat: RunHeat | None = None

    @property
    def median_s(self) -> float:
        """The median of at least one sample."""
        return quantile(sorted(self.samples_s), 0.5)


def finish(
    request: RunWorkload,
    description: WorkloadDescription,
    found: RunFacts,
    *,
    turns: str,
    elapsed_s: float,
) -> RunFinished:
    """Return the result of a run with at least one sample."""
    summary = summarize(found.samples_s)
    assert summary is not None
    assert found.verification is not None
    assert found.watch is not None
    return RunFinished(
        run_id=request.run_id,
        **{**request.parameters, "options": found.options},
        size_text=description.size_text,
        device_name=found.device_name,
        median_s=summary.median_s,
        iqr_s=summary.iqr_s,
        ci95_s=interval_of_rounds(found.samples_s, found.starts if len(found.starts) > 1 else ()),
        rounds_s=found.slices_s or round_medians(found.samples_s, found.starts),
        samples=summary.samples,
        calls_per_sample=found.calls_per_sample,
        throughput=found.throughput_work / summary.median_s,
        throughput_unit=description.throughput_unit,
        times=RunTimes(
            first_call_s=found.first_call_s or 0.0,
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
            computed_in=found.computed_in,
            cpu_threads=found.cpu_threads,
            torch_version=found.torch_version,
        ),
        details=RunDetails(
            parts_s=found.parts_s,
            curves=found.curves,
            findings=found.sentences,
            lessons=found.lessons,
            naive=found.naive,
            bytes_per_call=found.bytes_per_call,
            peak_allocated_bytes=found.peak_allocated_bytes,
        ),
        reached=found.reached,
        verified=found.verification.verified,
        verification=found.verification.sentence,
        doubts=found.doubts,
        outcome=found.outcome,
        turns=turns,
    )
