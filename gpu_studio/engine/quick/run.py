"""One run of a workload without PyTorch: set-up, check, then rounds of warm-up and timing.

The method is that of `engine.benchmark.run`: rounds that other runs take turns with, new numbers in
the memory each round, batches of at least 2 ms. The result is checked before the first round and
again after each.
"""

from __future__ import annotations

import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.finding import DOUBT, NOT_TESTED
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import (
    RunConditions,
    RunDetails,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunTimes,
    SamplesMeasured,
)
from gpu_studio.core.pause import SleepAlarm
from gpu_studio.core.statistics import (
    FEWEST_ROUNDS,
    interval_of_rounds,
    planned_rounds,
    quantile,
    round_medians,
    summarize,
)
from gpu_studio.core.texts import listed
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.engine.benchmark.timing import WARM_UP_S, Pace, choose_calls
from gpu_studio.engine.quick.work import (
    AdapterCall,
    Checked,
    NumpyCall,
    core_count,
    find_quick_work,
)
from gpu_studio.engine.sensor import CpuWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event as Flag

    from numpy.typing import NDArray

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.race_messages import RaceOutcome
    from gpu_studio.core.messages.run_messages import RunWorkload
    from gpu_studio.engine.benchmark.race_timing import FinishLine
    from gpu_studio.engine.benchmark.turns import TurnsClock
    from gpu_studio.engine.quick.compute import Compute
    from gpu_studio.engine.quick.work import GrowWork, QuickCall, QuickWork

_WARM_AGAIN_S = 0.05
_SHORT_ROUND_S = 0.2
_SMALL_UP_TO = {"copy": 4, "launch": 1}
_USUAL_SMALL = 256
# Half of what Windows waits for a driver, see `benchmark.admission`.
_LONGEST_CALL_S = 1.0
_SOFTWARE = "{name} is software: it computes on the CPU, and says nothing about a card."


class QuickRun:
    """One `RunWorkload` without PyTorch; `events` does the work and can be iterated once.

    Args:
        request: the run to make.
        stop: set by another thread to end the run between two batches.
        open_adapter: returns the opened adapter of an address; raises `StudioError`.
        cpu_name: the name of this PC's CPU.
        turns: the name of the runs that take turns with this one; empty if it is alone.
        clock: the time of their samples.
        line: where their race ends.
    """

    def __init__(
        self,
        request: RunWorkload,
        stop: Flag,
        open_adapter: Callable[[str], Compute],
        *,
        cpu_name: str,
        turns: str,
        clock: TurnsClock,
        line: FinishLine,
    ) -> None:
        self._request, self._stop = request, stop
        self._open_adapter, self._cpu_name = open_adapter, cpu_name
        self._turns, self._clock, self._line = turns, clock, line
        self._began_s = time.perf_counter()
        self._compute: Compute | None = None
        self._alarm = SleepAlarm()
        self._watch = CpuWatch()
        self._samples_s: list[float] = []
        self._starts: list[int] = []
        self._calls, self._round_s, self._spent_s = 1, math.inf, 0.0
        self._first_call_s = self._warm_up_s = 0.0
        self._operands: dict[int, list[NDArray[Any]]] = {}
        self._right: NDArray[Any] | None = None
        self._checked: Checked | None = None
        self._findings: tuple[str, ...] = ()

    def events(self) -> Iterator[Event | None]:
        """Yield the run's events, and None wherever another run may have its turn.

        Raises:
            StudioError: the request is impossible, or the driver failed; the message says which.
        """
        try:
            with self._alarm:
                yield from self._steps()
            return
        except _StoppedError:
            pass
        except Exception as error:
            if self._compute is None:
                raise
            raise self._compute.explained(error) from error
        yield RunStopped(run_id=self._request.run_id, samples=len(self._samples_s))

    def _steps(self) -> Iterator[Event | None]:
        request = self._request
        work = find_quick_work(request.workload)
        if not is_cpu(request.device):
            self._compute = self._open_adapter(request.device)
        options = self._admitted(work)
        yield RunStarted(
            run_id=request.run_id,
            **{**request.settings, "options": options},
            size_text=work.description.size_text,
            turns=self._turns,
        )
        yield self._phase("set-up")
        expected_s = self._expected_call_s(work)
        self._refuse_long_call(work, expected_s)
        yield self._phase("verification", expected_s)
        with contextlib.closing(self._prepared(work, request.size)) as call:
            self._first_call_s = call.time(None, 1)[1]
            self._check(work, call)
        self._check_stop()
        yield self._phase("warm-up", expected_s)
        yield from self._rounds(work)
        yield self._finished(work, options)

    def _admitted(self, work: QuickWork) -> dict[str, str]:
        """Return the options of the request, completed; raise `StudioError` if it cannot run."""
        request, description = self._request, work.description
        dtypes = description.dtypes
        if self._compute is not None:
            dtypes = tuple(one for one in dtypes if one in self._compute.adapter.dtypes)
        if request.dtype not in dtypes:
            where = self._compute.adapter.title if self._compute else "NumPy on the CPU"
            raise StudioError(
                FailureKind.DTYPE_UNSUPPORTED,
                f"{request.workload} does not run in {request.dtype} on {where}: choose "
                f"{listed(dtypes, 'or')}.",
            )
        modes = {
            "a cold cache": request.cache != "hot",
            "copies in each call": request.transfers,
            "a naive stopwatch": request.naive,
        }
        if wanted := [mode for mode, is_wanted in modes.items() if is_wanted]:
            message = f"This is possible only with PyTorch: {listed(wanted)}."
            raise StudioError(FailureKind.BAD_REQUEST, message)
        options = {one.name: one.values for one in description.options}
        for name, value in request.options.items():
            if value not in options.get(name, ()):
                choices = listed(options.get(name, ()), "or") or "nothing"
                message = f"Without PyTorch, {request.workload}'s {name[:20]} can be {choices}."
                raise StudioError(FailureKind.BAD_REQUEST, message)
        return {name: values[0] for name, values in options.items()}

    def _prepared(self, work: QuickWork, size: int) -> QuickCall:
        if size not in self._operands:
            self._operands = {size: work.operands(size, self._request.dtype)}
        operands = self._operands[size]
        if self._compute is None:
            return NumpyCall(work, operands)
        return AdapterCall(work, operands, self._compute, size, self._request.dtype)

    def _expected_call_s(self, work: QuickWork) -> float | None:
        """Return the seconds of a call by those of a small one; None if it is small itself."""
        size, dtype = self._request.size, self._request.dtype
        small = min(size, _SMALL_UP_TO.get(self._request.workload, _USUAL_SMALL))
        if small == size:
            return None
        with contextlib.closing(self._prepared(work, small)) as call:
            call.time(None, 1)  # compiles the shader
            small_s = min(call.time(None, 1)[1] for _ in range(3))
        return small_s * work.count(size, dtype).amount / work.count(small, dtype).amount

    def _refuse_long_call(self, work: QuickWork, expected_s: float | None) -> None:
        request = self._request
        longest_s = request.longest_call_s or math.inf
        if self._compute is not None:
            longest_s = min(longest_s, _LONGEST_CALL_S)
        if expected_s is not None and expected_s > longest_s:
            size = format_size(request.size, work.description.size_text)
            raise StudioError(
                FailureKind.TOO_SLOW,
                f"{request.workload} at {size} would take about {format_duration(expected_s)} a "
                f"call here; at most {format_duration(longest_s)} are allowed. Choose a smaller "
                "size.",
            )

    def _check(self, work: QuickWork, call: QuickCall) -> None:
        """Compare the result; a wrong one stays wrong. Equal bits are as right as before."""
        found, lost = call.result(), call.missing()
        if self._right is None or not np.array_equal(found, self._right):
            checked = work.check(self._operands[self._request.size], found, call.calls)
            if self._checked is None or self._checked.verified:
                self._checked = checked
            self._right = found.copy() if checked.verified else None
        if lost and self._checked is not None and self._checked.verified:
            self._checked = Checked(False, lost)

    def _rounds(self, work: QuickWork) -> Iterator[Event | None]:
        request = self._request
        while not self._is_enough():
            yield None
            self._check_stop()
            with contextlib.closing(self._prepared(work, request.size)) as call:
                call_s = self._warmed_up(call)
                if not self._starts:
                    yield self._phase("timing", call_s)
                self._starts.append(len(self._samples_s))
                self._watch.begin()
                yield from self._time(call)
                self._watch.end()
                self._check(work, call)
                if self._is_enough():
                    self._findings = call.findings()

    def _warmed_up(self, call: QuickCall) -> float:
        """Call until the device is at its speed; the first round chooses the calls of a sample."""
        is_first = not self._starts
        least_s = max(WARM_UP_S, self._request.load_s) if is_first else _WARM_AGAIN_S
        start_s, call_s = time.perf_counter(), math.inf
        call.time(None, 1)  # a new shader is compiled in its first call
        while not self._stop.is_set():
            call_s = min(call_s, call.time(None, 1)[0])
            if time.perf_counter() - start_s >= least_s:
                break
        self._check_stop()
        if is_first:
            self._warm_up_s = time.perf_counter() - start_s
            self._calls = choose_calls(call, nothing, call_s, self._stop.is_set)
            self._plan_rounds(call_s)
        return call_s

    def _plan_rounds(self, call_s: float) -> None:
        request = self._request
        if request.calls is not None or request.load or request.sustained:
            return
        may_stop = request.stop_at_relative_interval is not None
        longest_s = _SHORT_ROUND_S if may_stop else math.inf
        rounds = planned_rounds(request.timed_s, call_s, longest_s)
        self._round_s = request.timed_s / rounds

    def _time(self, call: QuickCall) -> Iterator[Event]:
        """Take samples for one round; send them at the run's pace."""
        request = self._request
        pace = Pace(0.0 if request.sustained or request.load else request.rest_s, self._stop)
        unsent_s: list[float] = []
        self._clock.begin()
        while True:
            own_s, wall_s = call.time(None, self._calls)
            self._check_stop()
            self._spent_s += wall_s
            unsent_s.append(own_s / self._calls)
            is_over = self._is_round_over(len(unsent_s))
            if not is_over and not pace.is_due():
                continue
            self._samples_s += unsent_s
            yield SamplesMeasured(
                run_id=request.run_id,
                samples_s=tuple(unsent_s),
                calls_per_sample=self._calls,
                spent_s=self._spent_s,
                ended_s=self._clock.at(time.perf_counter()),
                round_number=len(self._starts),
            )
            unsent_s = []
            self._check_stop()
            if is_over:
                return
            if pace.rest() and pace.needs_untimed(wall_s):
                call.time(None, self._calls)
            pace.begin_line()

    def _is_round_over(self, unsent: int) -> bool:
        request = self._request
        if request.calls is not None:
            return (len(self._samples_s) + unsent) * self._calls >= request.calls
        return self._spent_s >= min(self._round_s * len(self._starts), request.timed_s)

    def _is_enough(self) -> bool:
        """Return whether no further round follows."""
        request, rounds = self._request, len(self._starts)
        if not rounds:
            return False
        if request.calls is not None or self._spent_s >= request.timed_s:
            return True
        if rounds < FEWEST_ROUNDS:
            return False
        if request.longest_s and time.perf_counter() - self._began_s >= request.longest_s:
            return True
        wanted = request.stop_at_relative_interval
        low, high = interval_of_rounds(self._samples_s, self._starts)
        middle_s = quantile(sorted(self._samples_s), 0.5)
        return wanted is not None and (high - low) / 2 <= wanted * middle_s

    def _finished(
        self,
        work: QuickWork | GrowWork,
        options: dict[str, str],
        *,
        slices_s: tuple[float, ...] = (),
        outcome: RaceOutcome | None = None,
        curves: dict[str, tuple[float, ...]] | None = None,
    ) -> RunFinished:
        request, samples_s, starts = self._request, self._samples_s, self._starts
        summary, checked = summarize(samples_s), self._checked
        assert summary is not None
        assert checked is not None
        counted = work.count(request.size, request.dtype)
        is_of_cpu = self._compute is None
        return RunFinished(
            run_id=request.run_id,
            **{**request.parameters, "options": options},
            size_text=work.description.size_text,
            device_name=self._cpu_name if self._compute is None else self._compute.adapter.title,
            median_s=summary.median_s,
            iqr_s=summary.iqr_s,
            ci95_s=interval_of_rounds(samples_s, starts if len(starts) > 1 else ()),
            rounds_s=slices_s or round_medians(samples_s, starts),
            samples=summary.samples,
            calls_per_sample=self._calls,
            throughput=counted.amount / summary.median_s,
            throughput_unit=work.description.throughput_unit,
            times=RunTimes(
                first_call_s=self._first_call_s,
                warm_up_s=self._warm_up_s,
                elapsed_s=time.perf_counter() - self._began_s,
                timed_s=math.fsum(samples_s) * self._calls,
            ),
            conditions=RunConditions(
                other_processes=self._watch.other_processes if is_of_cpu else None,
                computed_in="float32" if request.workload == "matmul" else request.dtype,
                cpu_threads=core_count() if is_of_cpu else None,
            ),
            details=RunDetails(
                findings=self._remarks(),
                bytes_per_call=counted.bytes_moved,
                curves=curves or {},
            ),
            outcome=outcome,
            verified=checked.verified,
            verification=checked.sentence,
            doubts=self._doubts(),
            turns=self._turns,
        )

    def _remarks(self) -> tuple[str, ...]:
        if self._compute is None:
            return (*self._findings, "NumPy computed this on the CPU.")
        adapter = self._compute.adapter
        software = (_SOFTWARE.format(name=adapter.name),) if adapter.is_software else ()
        own_s, wall_s = math.fsum(self._samples_s) * self._calls, self._spent_s
        clock = (
            f"Timed by {adapter.interface}'s own clock: {format_duration(own_s)}; the wall clock "
            f"says {format_duration(wall_s)} with the launches."
        )
        return (*software, *self._findings, clock)

    def _doubts(self) -> dict[str, str]:
        if self._compute is None:
            return {}
        if not self._compute.adapter.is_software:
            return {DOUBT: NOT_TESTED}
        is_busy = self._watch.other_processes
        return {"busy CPU": "other programs kept the CPU busy"} if is_busy else {}

    def _phase(
        self, phase: str, expected_call_s: float | None = None, finish_steps: int | None = None
    ) -> RunPhaseChanged:
        return RunPhaseChanged(
            run_id=self._request.run_id,
            phase=phase,
            expected_call_s=expected_call_s,
            finish_steps=finish_steps,
        )

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self._alarm.check()


def nothing() -> None:
    """Stand for the call of a stopwatch that brings its own."""


class _StoppedError(Exception):
    """The user stopped the run."""
