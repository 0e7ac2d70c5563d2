"""One run of a workload: setup, verification, then rounds of warm-up and timing, and the result.

Only the work is in the timed region. Each batch is one sample, the whole budget goes into samples,
and events are sent only between batches. Every round makes its tensors anew, because their place in
memory sets the speed as well, and samples of one place do not show it. Between two rounds, another
run may have its turn (`in_turns`).
"""

from __future__ import annotations

import contextlib
import math
import time
from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark import sustained
from gpu_studio.core.device_name import CPU
from gpu_studio.core.messages.run_messages import (
    MOST_ROUNDS,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.core.pause import SleepAlarm
from gpu_studio.core.statistics import FEWEST_ROUNDS, interval_of_rounds, planned_rounds, quantile
from gpu_studio.core.telemetry import HEAT
from gpu_studio.engine.benchmark.admission import (
    admit,
    check_answers,
    refuse_long_kernel,
    refuse_too_large,
)
from gpu_studio.engine.benchmark.ceilings import measure_cpu
from gpu_studio.engine.benchmark.cold_cache import ColdStopwatch, buffer_bytes
from gpu_studio.engine.benchmark.load import load_of
from gpu_studio.engine.benchmark.naive import time_naively
from gpu_studio.engine.benchmark.race_timing import FinishLine, RaceTiming
from gpu_studio.engine.benchmark.result import RunFacts, finish
from gpu_studio.engine.benchmark.timing import (
    Pace,
    choose_calls,
    stopwatch_for,
    warm_up,
    warm_up_again,
    whole_batches,
)
from gpu_studio.engine.benchmark.turns import TurnsClock
from gpu_studio.engine.device import prove_kernels, time_once, uuid_of
from gpu_studio.engine.memory.caching_allocator import PeakMemory, read_memory
from gpu_studio.engine.own_code.picture import own_picture
from gpu_studio.engine.own_code.workload import own_workload
from gpu_studio.engine.sensor import CardWatch, CpuWatch, HeatLog
from gpu_studio.engine.threads import cpu_threads
from gpu_studio.engine.workloads.call import Drawing
from gpu_studio.engine.workloads.registry import find_picture, find_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event as Flag

    from gpu_studio.core.benchmark.ceilings import MeasuredCeilings
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.race_messages import RaceTraits
    from gpu_studio.core.messages.run_messages import OtherLoad
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.engine.sensor import Sensor, Watch
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Call
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.workload import Workload

_POLL_PERIOD_S = 0.1
# Time steps at least this long to estimate a race's pace, also on a busy PC.
_PACE_S = 0.3
# Of a run that may stop as soon as its interval is known.
_SHORT_ROUND_S = 0.2
# A look after each round stops at an interval that is narrow by chance: of rounds that differ by
# 10 %, 88 of 100 hold then, and 92 with these (simulated).
_ROUNDS_AFTER_STOP = 2


class WorkloadRun:
    """One `RunWorkload`; `events` does the work and can be iterated once.

    Args:
        request: the run to make.
        stop: set by another thread to end the run between two calls.
        sensor: reads the card; None if there is no sensor.
        cpu_name: the name of this PC's CPU.
        turns: the name of the runs that take turns with this one; empty if it is alone.
        line: where their race ends; None if it is alone.
        clock: the time of their samples; None if it is alone.
        alarm: notices when the PC slept, which ends the run.
    """

    def __init__(
        self,
        request: RunWorkload,
        stop: Flag,
        *,
        sensor: Sensor | None = None,
        cpu_name: str = "CPU",
        turns: str = "",
        line: FinishLine | None = None,
        clock: TurnsClock | None = None,
        alarm: SleepAlarm | None = None,
    ) -> None:
        self._request = request
        self._line = line or FinishLine()
        self._clock = clock or TurnsClock()
        self._alarm = alarm or SleepAlarm()
        self._began_s = time.perf_counter()
        self._contestant = 0
        self._stop = stop
        self._sensor = sensor
        self._cpu_name = cpu_name
        self._turns = turns
        self._threads: int | None = None
        self._heat: HeatLog | None = None
        self._waited_s, self._waits_since_s = 0.0, self._began_s
        self._found = RunFacts()
        self._traits: RaceTraits | None = None

    def events(self) -> Iterator[Event | None]:
        """Yield the run's events, and None wherever another run may have its turn.

        The last event ends the run.

        Raises:
            StudioError: the request is impossible, or the PC slept; the message says which.
        """
        steps, is_over = self._steps(), False
        try:
            with self._alarm:
                while not is_over:
                    self._waited_s += time.perf_counter() - self._waits_since_s
                    # The threads of a turn: another run may use others in between.
                    with cpu_threads(self._threads):
                        for event in steps:
                            if event is None:
                                break
                            yield event
                        else:
                            is_over = True
                    self._waits_since_s = time.perf_counter()
                    if not is_over:
                        yield None
            return
        except _StoppedError:
            pass  # answered below, after the failed frames and their tensors are gone
        yield RunStopped(run_id=self._request.run_id, samples=len(self._found.samples_s))

    def _steps(self) -> Iterator[Event | None]:
        request, found = self._request, self._found
        if request.code is not None:
            own = own_workload if request.race is None else own_picture
            workload: Workload = own(request.code)
        else:
            find = find_workload if request.race is None else find_picture
            workload = find(request.workload)
        case = admit(request, workload)
        self._traits = workload.description.race
        yield self._started(workload, case)
        yield self._phase("set-up")
        if request.race is not None:
            self._threads = request.race.threads
            yield None  # they count from the next turn on
        prove_kernels(case.device)
        found.other_load = self._other_load(case)
        self._check_stop()
        refuse_too_large(workload, case)
        refuse_long_kernel(workload, case, self._described(case))
        found.measured = self._cpu_ceilings(workload, case)
        self._check_stop()
        yield from self._checked_and_timed(workload, case)

    def _checked_and_timed(self, workload: Workload, case: Case) -> Iterator[Event | None]:
        request, found = self._request, self._found
        yield self._phase("verification")
        found.verification, expected_call_s = check_answers(
            workload, case, self._check_stop, request.longest_call_s
        )
        load_of(case.device).end_check()
        self._check_stop()
        # Only now: without the card's peaks, the small call above refuses a kernel of seconds.
        if request.naive:
            yield self._phase("naive")
            found.naive = time_naively(workload.description.name, case, self._stop)
            self._check_stop()

        yield self._phase("warm-up", expected_call_s)
        found.watch = self._watch(case)
        self._heat = HeatLog(self._heat_of(case)) if request.load else None
        yield from self._rounds(workload, case)
        if self._heat is not None:
            found.heat = self._heat.heat(found.spent_s, found.watch.throttled)
        yield finish(
            request,
            workload,
            case,
            found,
            cpu_name=self._cpu_name,
            turns=self._turns,
            elapsed_s=time.perf_counter() - self._began_s,
        )

    def _rounds(self, workload: Workload, case: Case) -> Iterator[Event | None]:
        """Measure in rounds until the budget is spent; record the findings in the last one."""
        while not self._is_enough():
            yield None
            self._check_stop()
            memory = PeakMemory(case.device)
            with contextlib.closing(workload.prepare(case)) as call:
                yield from self._round(workload, call, case, memory)
                while not (call.is_made_anew or self._is_enough()):
                    yield None
                    self._check_stop()
                    yield from self._round(workload, call, case, memory)
                if self._is_enough() and self._request.with_findings:
                    self._record_findings(call)
            del call

    def _round(
        self, workload: Workload, call: Call, case: Case, memory: PeakMemory
    ) -> Iterator[Event | None]:
        """Warm up and time a call for one round."""
        device, found = case.device, self._found
        assert found.watch is not None
        load_of(device).begin()
        warming_s = time.perf_counter()
        stopwatch, call_s = self._warmed_up(call, case, memory)
        self._check_stop()
        if isinstance(call, Drawing):
            yield from self._join(stopwatch, call)
        if not found.starts:
            found.warm_up_s = time.perf_counter() - warming_s
            yield self._timing_phase(call_s)
            found.loaded_s = time.perf_counter() - load_of(device).since_s
            self._plan_rounds(call_s)
        found.starts.append(len(found.samples_s))
        found.watch.begin()
        if isinstance(call, Drawing):
            # Untimed steps would move the picture on, so a spare one takes them.
            with contextlib.ExitStack() as stack:
                spare = workload.prepare(case) if self._turns else None
                if spare is not None:
                    stack.callback(spare.close)
                yield from self._race(stopwatch, call, case, spare)
        else:
            yield from self._time(stopwatch, call, case)
        found.watch.end()
        load_of(device).end()
        if call.elapsed_s() is None:  # a call with its own clock works in other processes
            peaks = (found.peak_allocated_bytes, memory.peak_bytes())
            found.peak_allocated_bytes = max((p for p in peaks if p is not None), default=None)

    def _join(self, stopwatch: Stopwatch, call: Call) -> Iterator[None]:
        """Wait at the finish line until all contestants are warm, which decides where it is."""
        found = self._found
        assert found.watch is not None
        calls = found.calls_per_sample
        steps, spent_s = 0, 0.0
        while spent_s < _PACE_S and not self._stop.is_set():
            spent_s += stopwatch.time(call.function, calls)[1]
            steps += calls
        self._check_stop()
        self._contestant = self._line.join(spent_s / steps, found.watch)
        if self._turns:
            yield None
            self._check_stop()
        found.calls_per_sample = whole_batches(calls, self._line.steps(self._request))

    def _warmed_up(self, call: Call, case: Case, memory: PeakMemory) -> tuple[Stopwatch, float]:
        """Warm up for a round; return its stopwatch and the seconds of the shortest call.

        The first round chooses the calls of a sample for all of them.
        """
        device, found, watch = case.device, self._found, self._found.watch
        assert watch is not None
        first_call_s = time_once(call, device)
        self._check_stop()
        if found.starts:
            call_s = self._warm_up(call, case, first_call_s, is_again=True)
        else:
            found.first_call_s = first_call_s
            call_s = self._warm_up(call, case, first_call_s, is_again=False)
            found.clock_mhz = watch.clock_mhz()
        stopwatch = stopwatch_for(call, device)
        if case.cache == "cold":
            stopwatch = ColdStopwatch(stopwatch, device)
            if call.is_made_anew or not found.starts:
                memory.ignore(buffer_bytes(device))
        elif call.is_batched and not found.starts:
            found.calls_per_sample = choose_calls(
                stopwatch, call.function, call_s, self._stop.is_set
            )
            if self._request.calls is not None and self._request.race is None:
                found.calls_per_sample = whole_batches(found.calls_per_sample, self._request.calls)
        return stopwatch, call_s

    def _warm_up(self, call: Call, case: Case, first_call_s: float, *, is_again: bool) -> float:
        """Bring a device to its speed, or back to it; return the seconds of the shortest call."""
        device, found, watch = case.device, self._found, self._found.watch
        assert watch is not None
        clock_mhz, is_stopped = watch.clock_mhz, self._stop.is_set
        if is_again:
            return warm_up_again(call, device, first_call_s, clock_mhz, found.clock_mhz, is_stopped)
        least_s = self._request.load_s or None
        return warm_up(call, device, first_call_s, clock_mhz, is_stopped, least_s=least_s)

    def _plan_rounds(self, call_s: float) -> None:
        """Decide how long a round is."""
        request = self._request
        if request.race is not None or request.calls is not None:
            return
        if request.sustained or request.load:
            return
        may_stop = request.stop_at_relative_interval is not None
        longest_s = _SHORT_ROUND_S if may_stop else math.inf
        rounds = planned_rounds(request.timed_s, call_s, longest_s)
        self._found.round_s = request.timed_s / rounds

    def _record_findings(self, call: Call) -> None:
        found = self._found
        found.parts_s = call.parts_s()
        found.curves = found.curves or call.curves()
        found.sentences, found.lessons = call.findings(), call.lessons()
        found.doubts = call.doubts()
        if self._request.sustained:
            assert found.watch is not None
            reason = sustained.unsteadiness(found.samples_s, found.watch.clocks_mhz)
            found.doubts = {**found.doubts, **({"not steady": reason} if reason else {})}

    def _race(
        self, stopwatch: Stopwatch, drawing: Drawing, case: Case, spare: Call | None
    ) -> Iterator[Event | None]:
        """Draw from the beginning to the finish line; send samples and frames.

        Args:
            stopwatch: times the steps.
            drawing: a drawing that has been warmed up.
            case: the case of the run.
            spare: another drawing, whose steps bring the device back to its speed; None if this
                contestant is alone.
        """
        found, watch = self._found, self._found.watch
        assert watch is not None
        assert found.verification is not None
        assert self._traits is not None

        def warm_again() -> None:
            assert spare is not None
            self._warm_up(spare, case, time_once(spare, case.device), is_again=True)

        race = RaceTiming(
            self._request,
            drawing,
            self._traits,
            self._line,
            self._contestant,
            found.calls_per_sample,
            may_finish=found.verification.verified is not False,
            warm_again=warm_again if spare is not None else None,
            stop=self._stop,
        )
        found.samples_s = race.samples_s
        read = partial(read_memory, case.device) if case.is_on_card else lambda: None
        for event in race.events(stopwatch, watch, read):
            self._check_stop()
            yield event
        self._check_stop()
        # The first ones, so that those of two contestants stay pairs.
        found.slices_s = tuple(race.slices_s[:MOST_ROUNDS])
        found.outcome = race.outcome()
        found.curves = race.curves()

    def _time(self, stopwatch: Stopwatch, call: Call, case: Case) -> Iterator[Event]:
        """Take samples until there are enough; send them at the run's pace."""
        request, found = self._request, self._found
        watch, calls = found.watch, found.calls_per_sample
        assert watch is not None
        unsent_s: list[float] = []
        # A rest would let a card cool down, so a load has none.
        pace = Pace(0.0 if request.sustained or request.load else request.rest_s, self._stop)
        polled_at_s = float("-inf")
        self._clock.begin()
        while True:
            batch_s, wall_s = stopwatch.time(call.function, calls)
            self._check_stop()
            found.spent_s += wall_s
            unsent_s.append(batch_s / calls)
            now_s = time.perf_counter()
            if case.is_on_card and now_s - polled_at_s >= _POLL_PERIOD_S:
                polled_at_s = now_s
                watch.poll()
                yield read_memory(case.device)
            if self._heat is not None:
                self._heat.poll(found.spent_s)
            over = self._is_round_over(len(unsent_s)) or self._stop.is_set()
            if not over and not pace.is_due():
                continue
            pace.begin_line()
            found.samples_s += unsent_s
            yield SamplesMeasured(
                run_id=request.run_id,
                samples_s=tuple(unsent_s),
                calls_per_sample=calls,
                spent_s=found.spent_s,
                ended_s=self._clock.at(now_s),
                round_number=len(found.starts),
                other_processes=found.other_load is not None or watch.other_processes,
            )
            unsent_s = []
            self._check_stop()
            if over:
                return
            self._rest(pace, stopwatch, call, wall_s)

    def _rest(self, pace: Pace, stopwatch: Stopwatch, call: Call, batch_s: float) -> None:
        """Rest while the window draws the samples, then regain the pace."""
        if pace.rest():
            self._check_stop()
            if pace.needs_untimed(batch_s):
                stopwatch.time(call.function, self._found.calls_per_sample)
            pace.begin_line()

    def _is_round_over(self, unsent: int) -> bool:
        """Return whether this round's share of the budget is spent, or all calls are made."""
        found = self._found
        if self._request.calls is not None:
            samples = len(found.samples_s) + unsent
            return samples * found.calls_per_sample >= self._request.calls
        return found.spent_s >= min(found.round_s * len(found.starts), self._request.timed_s)

    def _is_enough(self) -> bool:
        """Return whether no further round follows."""
        found, wanted = self._found, self._request.stop_at_relative_interval
        if len(found.starts) >= FEWEST_ROUNDS and wanted is not None and found.last_round is None:
            low, high = interval_of_rounds(found.samples_s, found.starts)
            middle_s = quantile(sorted(found.samples_s), 0.5)
            if (high - low) / 2 <= wanted * middle_s:
                found.last_round = len(found.starts) + _ROUNDS_AFTER_STOP
        if found.last_round is not None and len(found.starts) >= found.last_round:
            return True
        is_one_piece = self._request.race is not None or self._request.calls is not None
        if not is_one_piece and self._is_late() and len(found.starts) >= FEWEST_ROUNDS:
            return True
        return bool(found.starts) and (is_one_piece or found.spent_s >= self._request.timed_s)

    def _is_late(self) -> bool:
        """Return whether the turns of this run have taken as long as they may."""
        longest_s = self._request.longest_s
        taken_s = time.perf_counter() - self._began_s - self._waited_s
        return longest_s is not None and taken_s >= longest_s

    def _cpu_ceilings(self, workload: Workload, case: Case) -> MeasuredCeilings | None:
        return measure_cpu(case, workload.work(case), workload.computes_in(case))

    def _watch(self, case: Case) -> Watch:
        if not case.is_on_card:
            return CpuWatch()
        return CardWatch(self._sensor, uuid_of(case.device), reads_power=self._traits is not None)

    def _heat_of(self, case: Case) -> Callable[[], Telemetry | None]:
        """Return what reads the sensors of a case's device."""
        identity = uuid_of(case.device) if case.is_on_card else CPU
        if self._sensor is None or identity is None:
            return lambda: None
        return partial(self._sensor.read, identity, HEAT)

    def _described(self, case: Case) -> Device | None:
        """Return a case's card as its driver describes it; None on the CPU or if unknown."""
        uuid = uuid_of(case.device) if self._sensor is not None else None
        return self._sensor.device(uuid) if self._sensor is not None and uuid else None

    def _other_load(self, case: Case) -> OtherLoad | None:
        """Return what other programs do on a case's card; None on the CPU, whose watch tells it."""
        uuid = uuid_of(case.device) if self._sensor is not None and case.is_on_card else None
        if self._sensor is None or uuid is None:
            return None
        return load_of(case.device).of_others(self._sensor, uuid, self._stop)

    def _started(self, workload: Workload, case: Case) -> RunStarted:
        request = self._request
        return RunStarted(
            run_id=request.run_id,
            **{**request.settings, "options": dict(case.options)},
            size_text=workload.description.size_text,
            snippet=workload.snippet(case),
            turns=self._turns,
        )

    def _phase(self, phase: str, expected_call_s: float | None = None) -> RunPhaseChanged:
        return RunPhaseChanged(
            run_id=self._request.run_id, phase=phase, expected_call_s=expected_call_s
        )

    def _timing_phase(self, call_s: float) -> RunPhaseChanged:
        return RunPhaseChanged(
            run_id=self._request.run_id,
            phase="timing",
            expected_call_s=call_s,
            finish_steps=self._line.steps(self._request) if self._traits is not None else None,
        )

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self._alarm.check()


class _StoppedError(Exception):
    """The user stopped the run."""
