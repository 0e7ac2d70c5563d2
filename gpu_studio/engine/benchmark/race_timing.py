"""Time a drawing from its first step to the finish line of its race.

The race's clock runs only during steps. Between two batches it stands: then the sharpness is read,
and a frame is copied. The contestants of a race take turns in slices, each alone while it is timed.
A slice lasts until its contestant's clock is where the others' are, so all advance together. Where
a single step is longer than that, its contestant runs ahead by one step and no more: it lets its
turns pass until the others are there.

The race ends after the same number of steps for every contestant, chosen from their warm-ups: the
faster one is to take about the budget. When the first one has done all steps, the others stop at
that time of the race's clock, wherever they are.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceOutcome
from gpu_studio.core.messages.run_messages import SamplesMeasured
from gpu_studio.core.packed_frame import PackedFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Event as Flag

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.run_messages import RunWorkload
    from gpu_studio.engine.sensor import Watch
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Drawing

_POLL_PERIOD_S = 0.1
_LINE_PERIOD_S = _FRAME_PERIOD_S = 1 / 20
# After a frame, steps take at least so many times as long as it took.
_STEPS_PER_FRAME = 4
# Short enough that both pictures seem to move at once, long enough that the steps right after a
# change of sides weigh little.
_SLICE_S = 0.3
# Enough for a smooth curve in any window.
_MOST_POINTS = 1000
# Other programs may slow down the race after its warm-up.
_LONGEST = 2.5
_DIGITS = 2


class FinishLine:
    """The finish line of the contestants that race together.

    Attributes:
        ends_s: the race's clock when the first one finished; infinity before.
    """

    def __init__(self) -> None:
        self.ends_s = math.inf
        self._step_s: list[float] = []
        self._steps: int | None = None
        self._watches: list[Watch] = []
        self._worked_s: list[float] = []
        self._on_their_way: set[int] = set()

    def join(self, step_s: float, watch: Watch) -> int:
        """Add a contestant that is warm; return its number.

        Args:
            step_s: the seconds of one of its steps.
            watch: observes its device.
        """
        self._step_s.append(step_s)
        self._watches.append(watch)
        self._worked_s.append(0.0)
        return len(self._watches) - 1

    def steps(self, request: RunWorkload) -> int:
        """Return the number of steps of a race; the first question decides it for all."""
        steps = self._steps
        if steps is None:
            steps = request.calls or fitting_steps(request.timed_s, min(self._step_s))
            self._steps = steps
        return steps

    def longest_s(self, request: RunWorkload) -> float:
        """Return the race's clock when a run ends even if nobody has finished."""
        if request.longest_s is not None:
            return request.longest_s
        return math.inf if request.calls is not None else _LONGEST * request.timed_s

    @property
    def longest_step_s(self) -> float:
        """The seconds of a step of the slowest contestant, as its warm-up had it."""
        return max(self._step_s)

    def begin(self, contestant: int) -> None:
        """Record that a contestant is on its way: the others wait for it, and it for them."""
        self._on_their_way.add(contestant)

    def leave(self, contestant: int) -> None:
        """Record that a contestant does no more steps, for whatever reason."""
        self._on_their_way.discard(contestant)

    def advance(self, contestant: int, worked_s: float) -> None:
        """Record how long a contestant has worked until now: its own race clock."""
        self._worked_s[contestant] = worked_s

    def front_s(self, contestant: int) -> float:
        """Return the furthest clock of the others on their way; 0 without others."""
        return max(self._clocks_of_others(contestant), default=0.0)

    def rear_s(self, contestant: int) -> float:
        """Return the clock of the last one of the others on their way; infinity without others."""
        return min(self._clocks_of_others(contestant), default=math.inf)

    def _clocks_of_others(self, contestant: int) -> list[float]:
        return [self._worked_s[one] for one in self._on_their_way if one != contestant]

    def reach(self, elapsed_s: float) -> None:
        """Record that a contestant has done all steps."""
        self.ends_s = min(self.ends_s, elapsed_s)

    def poll_power(self) -> None:
        """Read the power of every device: the mean is that of the whole race.

        Drivers report an average over up to a second, which is longer than a turn.
        """
        for watch in self._watches:
            watch.poll_power()

    def energy_j(self, contestant: int) -> float | None:
        """Return the energy of a contestant's device in all turns of the race; None if unknown.

        It idles while others have their turns, and its mean power counts that as well.
        """
        power_w = self._watches[contestant].power_w
        return None if power_w is None else power_w * math.fsum(self._worked_s)


def fitting_steps(seconds: float, step_s: float) -> int:
    """Return the steps that take about so long: a number of two digits and zeros, at least 1."""
    steps = max(1, int(seconds / step_s)) if step_s > 0 else 1
    unit = int(10 ** max(0, len(str(steps)) - _DIGITS))
    return steps // unit * unit


class RaceTiming:
    """One contestant's way to the finish line; iterate `events` once.

    Args:
        request: the run, with its time budget.
        drawing: a drawing that has been warmed up.
        line: where the race ends.
        contestant: this one's number at the line.
        steps_per_batch: the steps of one sample, a divisor of all steps.
        may_finish: whether the finish line counts; it does not for wrong results.
        warm_again: brings the device back to its speed with untimed work, after another contestant
            had its turn; None if there is no other.
        stop: ends the race between two batches.
    """

    def __init__(
        self,
        request: RunWorkload,
        drawing: Drawing,
        line: FinishLine,
        contestant: int,
        steps_per_batch: int,
        *,
        may_finish: bool,
        warm_again: Callable[[], object] | None,
        stop: Flag,
    ) -> None:
        self._request, self._drawing = request, drawing
        self._finish_line, self._contestant = line, contestant
        self._finish_steps = line.steps(request)
        self._longest_s = line.longest_s(request)
        self._steps_per_batch = steps_per_batch
        self._may_finish = may_finish
        self._warm_again = warm_again
        self._stop = stop
        self._shows = request.showing is not None and request.showing.frames
        self._frames, self._frame_s = 0, 0.0
        self._opened: FramesOpened | None = None
        self._steps, self._elapsed_s = 0, 0.0
        self._measure = 0.0
        self._power_w: float | None = None
        self._curve: list[tuple[float, float, float]] = []
        self.samples_s: list[float] = []
        self.slices_s: list[float] = []
        """The mean seconds of a step in each slice."""

    def events(
        self, stopwatch: Stopwatch, watch: Watch, poll: Callable[[], Event | None]
    ) -> Iterator[Event | None]:
        """Draw from the beginning; yield samples and frames, and None at the end of a turn.

        Args:
            stopwatch: times a batch.
            watch: reads the card's sensors between batches.
            poll: called ten times a second between batches; returns an event to send.
        """
        self._drawing.restart()
        self._measure = self._drawing.measure()
        self._curve.append((0.0, 0.0, self._measure))
        yield from self._frame()
        self._finish_line.begin(self._contestant)
        try:
            yield from self._slices(stopwatch, watch, poll)
        finally:  # the others would wait for it
            self._finish_line.leave(self._contestant)

    def _slices(
        self, stopwatch: Stopwatch, watch: Watch, poll: Callable[[], Event | None]
    ) -> Iterator[Event | None]:
        line = self._finish_line
        unsent_s: list[float] = []
        slice_steps, slice_s = 0, 0.0
        shown_at_s = line_at_s = polled_at_s = time.perf_counter()
        while True:
            batch_s, wall_s = stopwatch.time(self._drawing.function, self._steps_per_batch)
            self._elapsed_s += wall_s
            self._steps += self._steps_per_batch
            line.advance(self._contestant, self._elapsed_s)
            slice_steps, slice_s = slice_steps + self._steps_per_batch, slice_s + wall_s
            unsent_s.append(batch_s / self._steps_per_batch)
            self._measure = self._drawing.measure()
            self._curve.append((float(self._steps), self._elapsed_s, self._measure))
            now_s = time.perf_counter()
            if now_s - polled_at_s >= _POLL_PERIOD_S:
                polled_at_s = now_s
                watch.poll()
                line.poll_power()
                self._power_w = watch.power_w
                if (event := poll()) is not None:
                    yield event
            if self._has_reached:
                line.reach(self._elapsed_s)
            is_over = self._is_over
            is_level = self._elapsed_s >= line.front_s(self._contestant)
            is_slice_over = is_over or (slice_s >= _SLICE_S and is_level)
            if is_slice_over:
                self.slices_s.append(slice_s / slice_steps)
                slice_steps, slice_s = 0, 0.0
            period_s = max(_FRAME_PERIOD_S, _STEPS_PER_FRAME * self._frame_s)
            is_frame = self._shows and now_s - shown_at_s >= period_s
            is_line = is_slice_over or is_frame or now_s - line_at_s >= _LINE_PERIOD_S
            if not is_line:
                continue
            self.samples_s += unsent_s
            yield self._line(unsent_s)
            unsent_s = []
            if is_over or is_frame:
                yield from self._frame()
                shown_at_s = time.perf_counter()
            if is_over:
                return
            if is_slice_over and self._warm_again is not None:
                yield None
                while self._waits:
                    yield None
                if self._is_over:  # another one has finished meanwhile
                    yield from self._frame()
                    return
                self._warm_again()
            elif is_frame and self._request.rest_s:
                self._stop.wait(self._request.rest_s)
            line_at_s = time.perf_counter()

    def outcome(self) -> RaceOutcome:
        """Return how far the drawing came, and the energy if the device's power is known."""
        return RaceOutcome(
            reached=self._has_reached,
            steps=self._steps,
            seconds=self._elapsed_s,
            measure=self._measure,
            progress=self._progress,
            finish_steps=self._finish_steps,
            power_w=self._power_w,
            energy_j=self._finish_line.energy_j(self._contestant),
        )

    def curves(self, measure_title: str) -> dict[str, tuple[float, ...]]:
        """Return the way to the finish line over time, thinned evenly, with first and last.

        Args:
            measure_title: the name of a picture's measure; empty where steps are the measure.
        """
        stride = math.ceil(len(self._curve) / _MOST_POINTS)
        points: Sequence[tuple[float, float, float]] = self._curve[::-stride][::-1]
        steps, seconds, measures = zip(*points, strict=True)
        return {
            "steps": steps,
            "seconds": seconds,
            measure_title or "steps done": measures,
        }

    @property
    def _has_reached(self) -> bool:
        return self._may_finish and self._steps >= self._finish_steps

    @property
    def _progress(self) -> float:
        # A wrong result has not come any nearer to the line.
        return min(self._steps / self._finish_steps, 1.0) if self._may_finish else 0.0

    @property
    def _waits(self) -> bool:
        """Whether others have to catch up first: short steps keep them side by side anyway."""
        line = self._finish_line
        is_long = line.longest_step_s > _SLICE_S
        return is_long and self._elapsed_s > line.rear_s(self._contestant) and not self._is_over

    @property
    def _is_over(self) -> bool:
        if self._stop.is_set() or self._steps >= self._finish_steps:
            return True
        return self._elapsed_s >= min(self._finish_line.ends_s, self._longest_s)

    def _line(self, samples_s: list[float]) -> SamplesMeasured:
        return SamplesMeasured(
            run_id=self._request.run_id,
            samples_s=tuple(samples_s),
            calls_per_sample=self._steps_per_batch,
            spent_s=self._elapsed_s,
        )

    def _frame(self) -> Iterator[Event]:
        if not self._shows:
            return
        begin_s = time.perf_counter()
        pixels = self._drawing.pixels()
        picture = PackedFrame.of(pixels) if pixels is not None else None
        self._frame_s = time.perf_counter() - begin_s
        if picture is not None and self._opened is None:
            self._opened = FramesOpened(
                run_id=self._request.run_id, width=picture.width, height=picture.height
            )
            yield self._opened
        if picture is not None and self._opened is not None:
            is_whole = (picture.width, picture.height) == (self._opened.width, self._opened.height)
            picture = picture if is_whole else None
        yield FrameReady(
            run_id=self._request.run_id,
            number=self._frames,
            elapsed_s=self._elapsed_s,
            steps=self._steps,
            measure=self._measure,
            progress=self._progress,
            power_w=self._power_w,
            energy_j=self._finish_line.energy_j(self._contestant),
            picture=picture.packed if picture is not None else None,
        )
        self._frames += 1
