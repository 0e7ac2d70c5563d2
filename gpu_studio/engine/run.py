"""One run of a workload: set-up, verification, warm-up, timing, result.

Everything that is not the work stays outside the timed region, each batch is one sample, the whole
budget is spent on samples, and events are handed out between batches only.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.protocol import (
    Event,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.sizes import ITEM_BYTES
from gpu_studio.core.statistics import summarize
from gpu_studio.engine.admission import check_numbers, refuse_too_large
from gpu_studio.engine.device import card_name, prove_kernels, resolve, uuid_of
from gpu_studio.engine.memory import read_memory
from gpu_studio.engine.sensor import CardWatch, CpuWatch
from gpu_studio.engine.timing import (
    IntervalRule,
    choose_calls,
    stopwatch_for,
    time_once,
    warm_up,
)
from gpu_studio.engine.workloads.registry import find_workload
from gpu_studio.engine.workloads.workload import WHOLE_UP_TO, Verification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event as Flag

    from gpu_studio.engine.sensor import Sensor, Watch
    from gpu_studio.engine.timing import Stopwatch
    from gpu_studio.engine.workloads.workload import Workload

_LINE_PERIOD_S = 1 / 60
_POLL_PERIOD_S = 0.1
# A large result is only checked where that takes about as long as the rest of the set-up.
_LONGEST_CHECK_S = 1.0


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
        self._samples_s: list[float] = []

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
        yield RunStopped(run_id=self._request.run_id, samples=len(self._samples_s))

    def _steps(self) -> Iterator[Event]:
        started_s = time.perf_counter()
        request = self._request
        workload = find_workload(request.workload)
        check_numbers(request, workload)
        device = resolve(request.device)
        yield self._started(workload)
        yield self._phase("set-up")
        prove_kernels(device)
        refuse_too_large(workload, request, device)
        self._check_stop()
        yield self._phase("verification")
        verification, expected_call_s = self._verify(workload, device)
        self._check_stop()

        yield self._phase("warm-up", expected_call_s)
        watch: Watch = (
            CpuWatch() if device.type == "cpu" else CardWatch(self._sensor, uuid_of(device))
        )
        call = workload.prepare(device, request.size, self._dtype)
        self._check_stop()
        warming_s = time.perf_counter()
        first_call_s = time_once(call, device)
        self._check_stop()
        call_s = warm_up(call, device, first_call_s, watch.clock_mhz, self._stop.is_set)
        stopwatch = stopwatch_for(device)
        calls = choose_calls(stopwatch, call, call_s, self._stop.is_set)
        warm_up_s = time.perf_counter() - warming_s
        self._check_stop()

        yield self._phase("timing", call_s)
        watch.begin()
        yield from self._time(stopwatch, call, calls, device, watch)
        watch.end()
        del call
        yield self._result(
            workload,
            device,
            verification,
            watch,
            calls_per_sample=calls,
            first_call_s=first_call_s,
            warm_up_s=warm_up_s,
            elapsed_s=time.perf_counter() - started_s,
        )

    def _verify(
        self, workload: Workload, device: torch.device
    ) -> tuple[Verification, float | None]:
        """Check the device's answers; return the check and how long a large call will take."""
        size = self._request.size
        small = min(size, WHOLE_UP_TO)
        check = workload.verify(device, small, self._dtype)
        self._check_stop()
        if size == small:
            return check, None
        call = workload.prepare(device, small, self._dtype)
        time_once(call, device)
        share = workload.operations(size) / workload.operations(small)
        expected_call_s = share * time_once(call, device)
        del call
        self._check_stop()
        if not check.verified:
            return check, expected_call_s
        if expected_call_s > _LONGEST_CHECK_S:
            # Another size may run other code: that the small one is right proves nothing of it.
            finding = f"too long to check at this size; {check.finding}"
            return Verification(None, finding, check.compared), expected_call_s
        large = workload.verify(device, size, self._dtype)
        if large.verified:
            large = Verification(True, large.finding, check.compared + large.compared)
        return large, expected_call_s

    def _time(
        self,
        stopwatch: Stopwatch,
        call: Callable[[], object],
        calls: int,
        device: torch.device,
        watch: Watch,
    ) -> Iterator[Event]:
        """Take samples until the budget is spent; hand them out at most 60 times a second."""
        request = self._request
        rule = IntervalRule(request.stop_at_relative_interval)
        unsent_s: list[float] = []
        spent_s = 0.0
        sent_at_s = time.perf_counter()
        polled_at_s = float("-inf")
        while True:
            batch_s, wall_s = stopwatch.time(call, calls)
            spent_s += wall_s
            unsent_s.append(batch_s / calls)
            rule.add(unsent_s[-1], wall_s)
            now_s = time.perf_counter()
            if device.type == "cuda" and now_s - polled_at_s >= _POLL_PERIOD_S:
                polled_at_s = now_s
                watch.poll()
                yield read_memory(device)
            over = spent_s >= request.budget_s or self._stop.is_set()
            if not over and now_s - sent_at_s < _LINE_PERIOD_S:
                continue
            sent_at_s = now_s
            self._samples_s += unsent_s
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

    def _result(
        self,
        workload: Workload,
        device: torch.device,
        verification: Verification,
        watch: Watch,
        *,
        calls_per_sample: int,
        first_call_s: float,
        warm_up_s: float,
        elapsed_s: float,
    ) -> RunFinished:
        request = self._request
        item_bytes = ITEM_BYTES[request.dtype]
        summary = summarize(self._samples_s)
        assert summary is not None  # the timed part takes at least one sample
        return RunFinished(
            run_id=request.run_id,
            workload=request.workload,
            size=request.size,
            dtype=request.dtype,
            device=request.device,
            device_name=self._device_name(device),
            median_s=summary.median_s,
            iqr_s=summary.iqr_s,
            ci95_s=summary.ci95_s,
            p99_s=summary.p99_s,
            samples=summary.samples,
            calls_per_sample=calls_per_sample,
            throughput=workload.throughput_work(request.size, item_bytes) / summary.median_s,
            throughput_unit=workload.description.throughput_unit,
            operations_per_call=workload.operations(request.size),
            bytes_per_call=workload.bytes_moved(request.size, item_bytes),
            first_call_s=first_call_s,
            warm_up_s=warm_up_s,
            elapsed_s=elapsed_s,
            verified=verification.verified,
            verification=verification.sentence,
            throttled=watch.throttled,
            other_processes=watch.other_processes,
            tf32=_tf32_allowed(device),
            cpu_threads=torch.get_num_threads(),
            in_window_process=self._in_window_process,
            torch_version=str(torch.__version__),
        )

    def _started(self, workload: Workload) -> RunStarted:
        request = self._request
        return RunStarted(
            run_id=request.run_id,
            workload=request.workload,
            device=request.device,
            size=request.size,
            dtype=request.dtype,
            budget_s=request.budget_s,
            snippet=workload.snippet(request.device, request.size, request.dtype),
        )

    def _phase(self, phase: str, expected_call_s: float | None = None) -> RunPhaseChanged:
        return RunPhaseChanged(
            run_id=self._request.run_id, phase=phase, expected_call_s=expected_call_s
        )

    def _device_name(self, device: torch.device) -> str:
        return self._cpu_name if device.type == "cpu" else card_name(device)

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _StoppedError

    @property
    def _dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self._request.dtype)
        return dtype


class _StoppedError(Exception):
    """The user wants the run to end."""


def _tf32_allowed(device: torch.device) -> bool | None:
    """Return whether float32 products may use TF32 here: cards from compute capability 8.0 on."""
    if device.type == "cpu":
        return None
    able = torch.cuda.get_device_capability(device) >= (8, 0)
    return able and torch.backends.cuda.matmul.allow_tf32
