"""Time a drawing from its first step to the finish line of its race.

The race's clock runs only during steps. Between two batches it stands: then the sharpness is read,
and a frame is copied. The contestants of a race take turns in slices, each alone while it is timed.
A slice lasts until its contestant's clock is where the others' are, so all advance together. Where
a single step is longer than that, its contestant runs ahead by one step and no more: it lets its
turns pass until the others are there.
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
    from gpu_studio.core.messages.race_messages import RaceTraits
    from gpu_studio.core.messages.run_messages import RunWorkload
    from gpu_studio.engine.benchmark.finish_line import FinishLine
    from gpu_studio.engine.sensor import Watch
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.drawing import Drawing

_POLL_PERIOD_S = 0.1
_LINE_PERIOD_S = _FRAME_PERIOD_S = 1 / 20
# After a frame, steps take at least so many times as long as it took.
_STEPS_PER_FRAME = 4
# Short enough that both pictures seem to move at once, long enough that the steps right after a
# change of sides weigh little.
_SLICE_S = 0.3
# Enough for a smooth curve in any window.
_MOST_POINTS = 1000


class RaceTiming:
    """One contestant's way to the finish line; iterate `events` once.

    Args:
        request: the run, with its time budget.
        drawing: a drawing that has been warmed up.
        traits: of its picture.
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
        traits: RaceTraits,
        line: FinishLine,
        contestant: int,
        steps_per_batch: int,
        *,
        may_finish: bool,
        warm_again: Callable[[], object] | None,
        stop: Flag,
    ) -> None:
        self._request, self._drawing, self._traits = request, drawing, traits
        self._finish_line, self._contestant = line, contestant
        self._finish_steps = line.steps(request)
        self._longest_s = line.longest_s(request)
        self._steps_per_batch = steps_per_batch
        self._may_finish = may_finish
        self._warm_again = warm_again
        self._stop = stop
        self._shows = request.showing is not None and request.showing.frames
        self._frames, self._frame_s = 0, 0.0
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

    def curves(self) -> dict[str, tuple[float, ...]]:
        """Return the way to the finish line over time, thinned evenly, with first and last."""
        stride = math.ceil(len(self._curve) / _MOST_POINTS)
        points: Sequence[tuple[float, float, float]] = self._curve[::-stride][::-1]
        steps, seconds, measures = zip(*points, strict=True)
        return {
            "steps": steps,
            "seconds": seconds,
            self._traits.measure_title or "steps done": measures,
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
        picture = PackedFrame.of(self._drawing.pixels())
        self._frame_s = time.perf_counter() - begin_s
        if not self._frames:
            yield FramesOpened(
                run_id=self._request.run_id, width=picture.width, height=picture.height
            )
        yield FrameReady(
            run_id=self._request.run_id,
            number=self._frames,
            elapsed_s=self._elapsed_s,
            steps=self._steps,
            measure=self._measure,
            progress=self._progress,
            power_w=self._power_w,
            energy_j=self._finish_line.energy_j(self._contestant),
            picture=picture.packed,
        )
        self._frames += 1
