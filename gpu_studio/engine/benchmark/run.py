"""One run of a workload: set-up, verification, warm-up, timing, result.

Everything that is not the work stays outside the timed region, each batch is one sample, the whole
budget is spent on samples, and events are handed out between batches only.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from gpu_studio.core.protocol import (
    Event,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.engine.benchmark.admission import admit, refuse_too_large
from gpu_studio.engine.benchmark.cold_cache import ColdStopwatch, buffer_bytes
from gpu_studio.engine.benchmark.naive import time_naively
from gpu_studio.engine.benchmark.pace import Pace
from gpu_studio.engine.benchmark.result_ceiling import measure_cpu
from gpu_studio.engine.benchmark.run_check import check_answers
from gpu_studio.engine.benchmark.run_result import Findings, finish
from gpu_studio.engine.benchmark.timing import (
    IntervalRule,
    choose_calls,
    stopwatch_for,
    warm_up,
    whole_batches,
)
from gpu_studio.engine.device import prove_kernels, uuid_of
from gpu_studio.engine.memory.caching_allocator import read_memory
from gpu_studio.engine.memory.peak_memory import PeakMemory
from gpu_studio.engine.sensor import CardWatch, CpuWatch
from gpu_studio.engine.stopwatch import time_once
from gpu_studio.engine.workloads.registry import find_workload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event as Flag

    from gpu_studio.engine.sensor import Sensor, Watch
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Call
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

_POLL_PERIOD_S = 0.1


class WorkloadRun:
    """One `RunWorkload`; `events` does the work and is iterated once.

    Args:
        request: what to run.
        stop: set by another thread to end it between two calls.
        sensor: tells of the card; None where nobody can.
        in_window_process: whether the window shares this process.
        cpu_name: what this PC's CPU is called.
    """

    def __init__(
        self,
        request: RunWorkload,
        stop: Flag,
        *,
        sensor: Sensor | None = None,
        in_window_process: bool = False,
        cpu_name: str = "CPU",
    ) -> None:
        self._request = request
        self._stop = stop
        self._sensor = sensor
        self._in_window_process = in_window_process
        self._cpu_name = cpu_name
        self._found = Findings()

    def events(self) -> Iterator[Event]:
        """Yield the run's events, of which the last ends it.

        Raises:
            StudioError: a request that cannot be done, with the sentence why.
        """
        try:
            yield from self._steps()
            return
        except _StoppedError:
            pass  # answered below, where the failed frames and their tensors are gone
        yield RunStopped(run_id=self._request.run_id, samples=len(self._found.samples_s))

    def _steps(self) -> Iterator[Event]:
        started_s = time.perf_counter()
        request, found = self._request, self._found
        workload = find_workload(request.workload)
        case = admit(request, workload)
        yield self._started(workload, case)
        yield self._phase("set-up")
        prove_kernels(case.device)
        refuse_too_large(workload, case)
        if request.naive:
            # First of all, as in a script: nothing of this work has run before.
            found.naive = time_naively(workload, case)
        found.measured = measure_cpu(case, workload.work(case))
        self._check_stop()
        yield self._phase("verification")
        found.verification, expected_call_s = check_answers(workload, case, self._check_stop)
        self._check_stop()

        yield self._phase("warm-up", expected_call_s)
        memory = PeakMemory(case.device)
        with contextlib.closing(workload.prepare(case)) as call:
            yield from self._measure(call, case, memory)
        del call
        yield finish(
            request,
            workload,
            case,
            found,
            cpu_name=self._cpu_name,
            in_window_process=self._in_window_process,
            elapsed_s=time.perf_counter() - started_s,
        )

    def _measure(self, call: Call, case: Case, memory: PeakMemory) -> Iterator[Event]:
        """Warm up, time and ask a call; what is found out is noted down."""
        device, found = case.device, self._found
        watch = found.watch = self._watch(case)
        self._check_stop()
        warming_s = time.perf_counter()
        found.first_call_s = time_once(call, device)
        self._check_stop()
        call_s = warm_up(call, device, found.first_call_s, watch.clock_mhz, self._stop.is_set)
        stopwatch = stopwatch_for(call, device)
        if case.cache == "cold":
            stopwatch = ColdStopwatch(stopwatch, device)
            memory.ignore(buffer_bytes(device))
        elif call.is_batched:
            found.calls_per_sample = choose_calls(
                stopwatch, call.function, call_s, self._stop.is_set
            )
            if self._request.calls is not None:
                found.calls_per_sample = whole_batches(found.calls_per_sample, self._request.calls)
        found.warm_up_s = time.perf_counter() - warming_s
        self._check_stop()

        yield self._phase("timing", call_s)
        watch.begin()
        yield from self._time(stopwatch, call, case)
        watch.end()
        if call.elapsed_s() is None:  # with a clock of its own it works in other processes
            found.peak_allocated_bytes = memory.peak_bytes()
        del stopwatch
        found.parts_s = call.parts_s()
        found.curves = call.curves()
        found.sentences = call.findings()
        found.doubts = call.doubts()

    def _time(self, stopwatch: Stopwatch, call: Call, case: Case) -> Iterator[Event]:
        """Take samples until it is enough; hand them out at the run's pace."""
        request, watch, calls = self._request, self._found.watch, self._found.calls_per_sample
        assert watch is not None
        rule = IntervalRule(request.stop_at_relative_interval)
        unsent_s: list[float] = []
        spent_s = 0.0
        pace = Pace(request.rest_s, self._stop)
        polled_at_s = float("-inf")
        while True:
            batch_s, wall_s = stopwatch.time(call.function, calls)
            spent_s += wall_s
            unsent_s.append(batch_s / calls)
            rule.add(unsent_s[-1], wall_s)
            now_s = time.perf_counter()
            if case.is_on_card and now_s - polled_at_s >= _POLL_PERIOD_S:
                polled_at_s = now_s
                watch.poll()
                yield read_memory(case.device)
            over = self._is_enough(spent_s, len(unsent_s)) or self._stop.is_set()
            if not over and not pace.is_due():
                continue
            pace.begin_line()
            self._found.samples_s += unsent_s
            yield SamplesMeasured(
                run_id=request.run_id,
                samples_s=tuple(unsent_s),
                calls_per_sample=calls,
                spent_s=spent_s,
            )
            unsent_s = []
            self._check_stop()
            if over or rule.is_met():
                return
            self._rest(pace, stopwatch, call, wall_s)

    def _rest(self, pace: Pace, stopwatch: Stopwatch, call: Call, batch_s: float) -> None:
        """Let the samples that were handed over be drawn, and get into step again."""
        if pace.rest():
            self._check_stop()
            if pace.needs_untimed(batch_s):
                stopwatch.time(call.function, self._found.calls_per_sample)
            pace.begin_line()

    def _is_enough(self, spent_s: float, unsent: int) -> bool:
        """Return whether the budget is spent, or the calls that were asked for are made."""
        if self._request.calls is None:
            return spent_s >= self._request.budget_s
        samples = len(self._found.samples_s) + unsent
        return samples * self._found.calls_per_sample >= self._request.calls

    def _watch(self, case: Case) -> Watch:
        if not case.is_on_card:
            return CpuWatch()
        return CardWatch(self._sensor, uuid_of(case.device))

    def _started(self, workload: Workload, case: Case) -> RunStarted:
        request = self._request
        return RunStarted(
            run_id=request.run_id,
            workload=request.workload,
            device=request.device,
            size=request.size,
            dtype=request.dtype,
            budget_s=request.budget_s,
            options=dict(case.options),
            cache=case.cache,
            transfers=case.transfers,
            size_text=workload.description.size_text,
            snippet=workload.snippet(case),
        )

    def _phase(self, phase: str, expected_call_s: float | None = None) -> RunPhaseChanged:
        return RunPhaseChanged(
            run_id=self._request.run_id, phase=phase, expected_call_s=expected_call_s
        )

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _StoppedError


class _StoppedError(Exception):
    """The user wants the run to end."""
