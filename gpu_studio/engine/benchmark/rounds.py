"""The rounds of a measurement, with PyTorch or without: warm-up, timing, and the pace of both.

Only the work is in the timed region. Each batch is one sample, the whole budget goes into samples,
and events are sent only between batches. Every round makes its memory anew, because its place there
sets the speed as well, and samples of one place do not show it. Between two rounds, another run may
have its turn (`in_turns`). No torch here.
"""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark import sustained
from gpu_studio.core.device_name import CPU
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import (
    MOST_IN_TURNS,
    MOST_ROUNDS,
    RunFailed,
    RunPhaseChanged,
    RunsEnded,
    RunStarted,
    RunStopped,
    SamplesMeasured,
)
from gpu_studio.core.pause import SleepAlarm
from gpu_studio.core.statistics import FEWEST_ROUNDS, interval_of_rounds, planned_rounds
from gpu_studio.core.telemetry import HEAT
from gpu_studio.engine.benchmark.load import load_of
from gpu_studio.engine.benchmark.race_timing import FinishLine, RaceTiming
from gpu_studio.engine.benchmark.result import RunFacts, finish
from gpu_studio.engine.benchmark.timing import (
    Pace,
    choose_calls,
    warm_up,
    warm_up_again,
    whole_batches,
)
from gpu_studio.engine.sensor import CardWatch, CpuWatch, HeatLog
from gpu_studio.engine.workloads.call import Drawing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from threading import Event as Flag

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import (
        OtherLoad,
        RunInTurns,
        RunWorkload,
        WorkloadDescription,
    )
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.engine.sensor import Sensor
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Call

_POLL_PERIOD_S = 0.1
# Time steps at least this long to estimate a race's pace, also on a busy PC.
_PACE_S = 0.3
# Of a run that may stop as soon as its interval is known.
_SHORT_ROUND_S = 0.2
# A look after each round stops at an interval that is narrow by chance: of rounds that differ by
# 10 %, 88 of 100 hold then, and 92 with these (simulated).
_ROUNDS_AFTER_STOP = 2


class MeasuredRun(ABC):
    """One `RunWorkload`; `events` does the work and can be iterated once.

    A subclass knows the devices: it makes the calls that the rounds time, and its `_steps` says
    what the work is (`_description`) and where it runs (`_is_on_card`, `_identity`).

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
        self._heat: HeatLog | None = None
        self._waited_s, self._waits_since_s = 0.0, self._began_s
        self._found = RunFacts()
        self._description: WorkloadDescription
        self._is_on_card = False
        self._identity: str | None = None
        """The card's, for the sensor; None if unknown, and on the CPU."""

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
                    with self._turn():
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

    # ── what a subclass knows ────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _steps(self) -> Iterator[Event | None]:
        """Yield the events of the whole run, and None at the end of each turn."""

    @abstractmethod
    def _prepare(self) -> Call:
        """Make what a round times, in new memory."""

    @abstractmethod
    def _time_once(self, call: Call) -> float:
        """Return the seconds of one call until its device is idle."""

    @abstractmethod
    def _stopwatch(self, call: Call) -> Stopwatch:
        """Return the stopwatch for a call that has run at least once."""

    def _turn(self) -> AbstractContextManager[object]:
        """Return what is set while this run has its turn."""
        return contextlib.nullcontext()

    def _begin_memory(self) -> None:  # noqa: B027 - not every device tells it
        """Begin to count the memory that is taken from now on."""

    def _read_memory(self) -> Event | None:
        """Return the device's memory, between two batches; None if it does not tell."""
        return None

    def _end_round(self, call: Call) -> None:  # noqa: B027 - not every device has news then
        """Look at a call whose round is over."""

    # ── the rounds ───────────────────────────────────────────────────────────────────────────────

    def _rounds(self, expected_call_s: float | None) -> Iterator[Event | None]:
        """Measure in rounds until the budget is spent; record the findings in the last one."""
        found = self._found
        yield self._phase("warm-up", expected_call_s)
        is_race = self._request.race is not None
        found.watch = (
            CardWatch(self._sensor, self._identity, reads_power=is_race)
            if self._is_on_card
            else CpuWatch()
        )
        self._heat = HeatLog(self._read_heat) if self._request.load else None
        while not self._is_enough():
            yield None
            self._check_stop()
            self._begin_memory()
            with contextlib.closing(self._prepare()) as call:
                yield from self._round(call)
                while not (call.is_made_anew or self._is_enough()):
                    yield None
                    self._check_stop()
                    yield from self._round(call)
                if self._is_enough() and self._request.with_findings:
                    self._record_findings(call)
            del call
        if self._heat is not None:
            found.heat = self._heat.heat(found.spent_s, found.watch.throttled)

    def _round(self, call: Call) -> Iterator[Event | None]:
        """Warm up and time a call for one round."""
        found, load = self._found, load_of(self._request.device)
        assert found.watch is not None
        load.begin()
        warming_s = time.perf_counter()
        stopwatch, call_s = self._warmed_up(call)
        self._check_stop()
        if isinstance(call, Drawing):
            yield from self._join(stopwatch, call)
        if not found.starts:
            found.warm_up_s = time.perf_counter() - warming_s
            steps = self._line.steps(self._request) if isinstance(call, Drawing) else None
            yield self._phase("timing", call_s, steps)
            found.loaded_s = time.perf_counter() - load.since_s
            self._plan_rounds(call_s)
        found.starts.append(len(found.samples_s))
        found.watch.begin()
        if isinstance(call, Drawing):
            # Untimed steps would move the picture on, so a spare one takes them.
            with contextlib.ExitStack() as stack:
                spare = self._prepare() if self._turns else None
                if spare is not None:
                    stack.callback(spare.close)
                yield from self._race(stopwatch, call, spare)
        else:
            yield from self._time(stopwatch, call)
        found.watch.end()
        load.end()
        self._end_round(call)

    def _warmed_up(self, call: Call) -> tuple[Stopwatch, float]:
        """Warm up for a round; return its stopwatch and the seconds of the shortest call.

        The first round chooses the calls of a sample for all of them.
        """
        found, request, is_first = self._found, self._request, not self._found.starts
        assert found.watch is not None
        first_call_s = self._time_once(call)
        self._check_stop()
        if is_first and found.first_call_s is None:  # it may have been made to be checked
            found.first_call_s = first_call_s
        call_s = self._warm_up(call, first_call_s, is_again=not is_first)
        if is_first:
            found.clock_mhz = found.watch.clock_mhz()
        stopwatch = self._stopwatch(call)
        if is_first and call.is_batched and request.cache == "hot":
            calls = choose_calls(stopwatch, call.function, call_s, self._stop.is_set)
            if request.calls is not None and request.race is None:
                calls = whole_batches(calls, request.calls)
            found.calls_per_sample = calls
        return stopwatch, call_s

    def _warm_up(self, call: Call, first_call_s: float, *, is_again: bool) -> float:
        """Bring a device to its speed, or back to it; return the seconds of the shortest call."""
        found, time_once = self._found, partial(self._time_once, call)
        assert found.watch is not None
        clock_mhz, is_stopped = found.watch.clock_mhz, self._stop.is_set
        if is_again:
            return warm_up_again(time_once, first_call_s, clock_mhz, found.clock_mhz, is_stopped)
        return warm_up(
            time_once,
            first_call_s,
            clock_mhz,
            is_stopped,
            is_on_card=self._is_on_card,
            least_s=self._request.load_s or None,
        )

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

    def _time(self, stopwatch: Stopwatch, call: Call) -> Iterator[Event]:
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
            if self._is_on_card and now_s - polled_at_s >= _POLL_PERIOD_S:
                polled_at_s = now_s
                watch.poll()
                if (memory := self._read_memory()) is not None:
                    yield memory
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
            if (high - low) / 2 <= wanted * found.median_s:
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

    # ── a race ───────────────────────────────────────────────────────────────────────────────────

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

    def _race(
        self, stopwatch: Stopwatch, drawing: Drawing, spare: Call | None
    ) -> Iterator[Event | None]:
        """Draw from the beginning to the finish line; send samples and frames.

        Args:
            stopwatch: times the steps.
            drawing: a drawing that has been warmed up.
            spare: another drawing, whose steps bring the device back to its speed; None if this
                contestant is alone.
        """
        found = self._found
        assert found.watch is not None
        assert found.verification is not None

        def warm_again() -> None:
            assert spare is not None
            self._warm_up(spare, self._time_once(spare), is_again=True)

        race = RaceTiming(
            self._request,
            drawing,
            self._line,
            self._contestant,
            found.calls_per_sample,
            may_finish=found.verification.verified is not False,
            warm_again=warm_again if spare is not None else None,
            stop=self._stop,
        )
        found.samples_s = race.samples_s
        for event in race.events(stopwatch, found.watch, self._read_memory):
            self._check_stop()
            yield event
        self._check_stop()
        # The first ones, so that those of two contestants stay pairs.
        found.slices_s = tuple(race.slices_s[:MOST_ROUNDS])
        found.outcome = race.outcome()
        found.spent_s = found.outcome.seconds
        assert self._description.race is not None
        found.curves = race.curves(self._description.race.measure_title)

    # ── the sensors and the words ────────────────────────────────────────────────────────────────

    def _read_heat(self) -> Telemetry | None:
        """Return the sensors of the run's device; None if unknown."""
        identity = self._identity if self._is_on_card else CPU
        return self._sensor.read(identity, HEAT) if self._sensor and identity else None

    def _other_load(self) -> OtherLoad | None:
        """Return what other programs do on the card; None on the CPU, whose watch tells it."""
        if self._sensor is None or self._identity is None:
            return None
        return load_of(self._request.device).of_others(self._sensor, self._identity, self._stop)

    def _started(self, snippet: str = "") -> RunStarted:
        return RunStarted(
            run_id=self._request.run_id,
            **{**self._request.settings, "options": self._found.options},
            size_text=self._description.size_text,
            snippet=snippet,
            turns=self._turns,
        )

    def _phase(
        self, phase: str, expected_call_s: float | None = None, finish_steps: int | None = None
    ) -> RunPhaseChanged:
        return RunPhaseChanged(
            run_id=self._request.run_id,
            phase=phase,
            expected_call_s=expected_call_s,
            finish_steps=finish_steps,
        )

    def _finished(self) -> Event:
        elapsed_s = time.perf_counter() - self._began_s
        return finish(
            self._request, self._description, self._found, turns=self._turns, elapsed_s=elapsed_s
        )

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
        self._alarm.check()


class _StoppedError(Exception):
    """The user stopped the run."""


# ── turns ────────────────────────────────────────────────────────────────────────────────────────


class TurnsClock:
    """The seconds since the first sample of runs in turns began: one clock for all of them."""

    def __init__(self) -> None:
        self._began_s: float | None = None

    def begin(self) -> None:
        """Begin with the first sample; later ones change nothing."""
        if self._began_s is None:
            self._began_s = time.perf_counter()

    def at(self, moment_s: float) -> float:
        """Return the seconds up to a moment of `time.perf_counter`."""
        return moment_s - self._began_s if self._began_s is not None else 0.0


def in_turns(runs: Sequence[Iterator[Event | None]]) -> Iterator[Event]:
    """Yield the events of all runs; the last one ends the request.

    The order changes with each round (A B, B A, A B, …), so that a slow drift disturbs all runs
    alike. A failure that ends the engine waits until the other runs are over.

    Args:
        runs: each yields its events, and None at the end of its turn. A failure is an event, never
            an exception.
    """
    waiting, fatal = list(runs), []
    try:
        while waiting:
            for run in tuple(waiting):
                for event in run:
                    if event is None:
                        break
                    if isinstance(event, RunFailed) and event.failure.fatal:
                        fatal.append(event)
                    else:
                        yield event
                else:
                    waiting.remove(run)
            waiting.reverse()
    finally:
        for run in waiting:  # nobody listens any more
            run.close()  # type: ignore[attr-defined]
    for event in fatal[:-1]:
        failure = msgspec.structs.replace(event.failure, fatal=False)
        yield msgspec.structs.replace(event, failure=failure)
    yield fatal[-1] if fatal else RunsEnded()


def check_turns(request: RunInTurns) -> None:
    """Raise `StudioError` if the runs of a request cannot take turns; the message says why."""
    names = [run.run_id for run in request.runs]
    if not 1 <= len(names) <= MOST_IN_TURNS:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"{len(names)} runs cannot take turns: choose 1 to {MOST_IN_TURNS}.",
        )
    if len(set(names)) < len(names):
        raise StudioError(FailureKind.BAD_REQUEST, "Two runs in turns have the same name.")
