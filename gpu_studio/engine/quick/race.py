"""A race without PyTorch: the pattern of `workloads.grow`, on an adapter or by NumPy.

The race itself is that of `engine.benchmark.race_timing`.
"""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import MOST_ROUNDS, RunStarted
from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE
from gpu_studio.core.race import gray_scott
from gpu_studio.core.race.pictures import GROW, wide_height
from gpu_studio.engine.benchmark.race_timing import RaceTiming
from gpu_studio.engine.benchmark.timing import WARM_UP_S, choose_calls, whole_batches
from gpu_studio.engine.quick import shaders
from gpu_studio.engine.quick.compute import BoundShader
from gpu_studio.engine.quick.run import QuickRun, nothing
from gpu_studio.engine.quick.work import Checked, GrowWork, core_count
from gpu_studio.engine.stopwatch import CpuStopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from gpu_studio.core.messages.message import Event
    from gpu_studio.engine.quick.compute import Compute

    State = NDArray[Any]

_SIZES = (8, 4096)
_PACE_S, _WARM_AGAIN_S = 0.3, 0.02


class QuickDrawing(ABC):
    """A pattern in progress; each call of `time` does steps.

    Args:
        size: the width of the picture.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.steps = 0

    @property
    def function(self) -> Callable[[], object]:
        """Stands for the step: `time` brings its own."""
        return nothing

    @abstractmethod
    def restart(self) -> None:
        """Return to the picture before the first step."""

    @abstractmethod
    def time(self, call: object, calls: int) -> tuple[float, float]:
        """Do steps; see `stopwatch.Stopwatch`."""

    @abstractmethod
    def state(self) -> State:
        """Return both substances, shape (height, width, 2)."""

    def measure(self) -> float:
        """Return the steps."""
        return float(self.steps)

    def pixels(self) -> NDArray[np.uint8]:
        """Return the second substance in colors; a large picture leaves cells out."""
        stride = -(-self.size // LARGEST_FRAME_SIDE)
        return gray_scott.colors(self.state()[::stride, ::stride, 1])

    def close(self) -> None:  # noqa: B027 - NumPy's holds nothing
        """Free the memory."""


class AdapterGrow(QuickDrawing):
    """The pattern on an adapter: each step reads one buffer and writes the other."""

    def __init__(self, size: int, compute: Compute) -> None:
        super().__init__(size)
        self._compute = compute
        height = wide_height(size)
        self._begin = gray_scott.planted(size).astype(np.float32)
        self._buffers = [compute.buffer(self._begin) for _ in range(2)]
        code = shaders.grow(size, height)
        groups = (-(-size // 16), -(-height // 16))
        here, there = self._buffers
        self._ways = [
            BoundShader(compute, code, pair, groups) for pair in ([here, there], [there, here])
        ]

    def restart(self) -> None:
        self.steps = 0
        self._compute.device.queue.write_buffer(self._buffers[0], 0, self._begin)

    def time(self, call: object, calls: int) -> tuple[float, float]:
        ways = self._ways[:: -1 if self.steps % 2 else 1]
        self.steps += calls
        return self._compute.batch(ways, calls, is_each_submitted=False)

    def state(self) -> State:
        found = self._compute.read(self._buffers[self.steps % 2], "float32")
        return found[: self._begin.size].reshape(self._begin.shape)

    def close(self) -> None:
        for way in self._ways:
            way.close()


class NumpyGrow(QuickDrawing):
    """The pattern by NumPy, a band of rows for each thread; float64 is the reference."""

    def __init__(self, size: int, threads: int, dtype: str = "float32") -> None:
        super().__init__(size)
        self._threads, self._dtype = threads, dtype
        self._pool = ThreadPoolExecutor(threads)
        self._stopwatch = CpuStopwatch()
        self.restart()

    def restart(self) -> None:
        self.steps = 0
        self._now = _wrapped(gray_scott.planted(self.size).astype(self._dtype))

    def time(self, call: object, calls: int) -> tuple[float, float]:
        self.steps += calls
        return self._stopwatch.time(self._step, calls)

    def state(self) -> State:
        return self._now[1:-1, 1:-1]

    def _step(self) -> None:
        now, height = self._now, self._now.shape[0] - 2
        new = np.empty_like(now)
        band = -(-height // self._threads)

        def work(first: int) -> None:
            gray_scott.step(now[first : min(first + band, height) + 2], new, first)

        list(self._pool.map(work, range(0, height, band)))
        self._now = _close(new)

    def close(self) -> None:
        self._pool.shutdown(wait=False)


def _wrapped(state: State) -> State:
    """Return the picture with the cells of the other side around it: it has no edges."""
    whole = np.empty((state.shape[0] + 2, state.shape[1] + 2, 2), state.dtype)
    whole[1:-1, 1:-1] = state
    return _close(whole)


def _close(whole: State) -> State:
    whole[0], whole[-1] = whole[-2], whole[1]
    whole[:, 0], whole[:, -1] = whole[:, -2], whole[:, 1]
    return whole


class QuickRace(QuickRun):
    """One contestant of a race; see `run.QuickRun`."""

    def _steps(self) -> Iterator[Event | None]:
        request, race = self._request, self._request.race
        least, most = _SIZES
        if request.workload != GROW.name or request.dtype != "float32" or race is None:
            message = f"Without PyTorch, there is only the race {GROW.name} in float32."
            raise StudioError(FailureKind.BAD_REQUEST, message)
        if not least <= request.size <= most:
            message = f"{GROW.name} takes sizes from {least} to {most}, not {request.size}."
            raise StudioError(FailureKind.BAD_REQUEST, message)
        if not is_cpu(request.device):
            self._compute = self._open_adapter(request.device)
        yield RunStarted(
            run_id=request.run_id,
            **request.parameters,
            budget_s=request.budget_s,
            size_text=GROW.size_text,
            turns=self._turns,
        )
        yield self._phase("set-up")
        yield None
        with contextlib.closing(self._new()) as drawing:
            yield self._phase("verification")
            self._checked = self._compared(drawing)
            yield self._phase("warm-up")
            yield from self._raced(drawing)
        yield self._race_finished()

    def _new(self) -> QuickDrawing:
        request = self._request
        if self._compute is not None:
            return AdapterGrow(request.size, self._compute)
        assert request.race is not None
        return NumpyGrow(request.size, request.race.threads or core_count())

    def _compared(self, drawing: QuickDrawing) -> Checked:
        """Compare some steps with the same in float64 by NumPy."""
        size = self._request.size
        steps = gray_scott.CHECKED_STEPS if size <= 256 else 2
        self._first_call_s = drawing.time(None, 1)[1]
        drawing.restart()
        with contextlib.closing(NumpyGrow(size, core_count(), "float64")) as reference:
            for one in (drawing, reference):
                for _ in range(steps):
                    one.time(None, 1)
            off = float(np.abs(drawing.state() - reference.state()).max())
        allowed = gray_scott.EPS_PER_STEP * steps * float(np.finfo(np.float32).eps)
        compared = f"all of {size} × {wide_height(size)} after {steps} steps"
        if not off <= allowed:
            return Checked(False, f"off by up to {off:.1e}: {compared}")
        return Checked(True, f"within rounding ({allowed:.1e}) of float64: {compared}")

    def _raced(self, drawing: QuickDrawing) -> Iterator[Event | None]:
        request, line = self._request, self._line
        began_s, call_s = time.perf_counter(), math.inf
        while time.perf_counter() - began_s < WARM_UP_S:
            call_s = min(call_s, drawing.time(None, 1)[0])
            self._check_stop()
        calls = choose_calls(drawing, nothing, call_s, self._stop.is_set)
        steps, spent_s = 0, 0.0
        while spent_s < _PACE_S:
            spent_s += drawing.time(None, calls)[1]
            steps += calls
            self._check_stop()
        self._warm_up_s = time.perf_counter() - began_s
        contestant = line.join(spent_s / steps, self._watch)
        if self._turns:
            yield None
            self._check_stop()
        self._calls = whole_batches(calls, line.steps(request))
        finish = line.steps(request)
        yield self._phase("timing", spent_s / steps, finish)
        assert GROW.race is not None
        assert self._checked is not None
        with contextlib.closing(self._new()) as spare:
            asked: Any = drawing  # it has no result of PyTorch, which only other runs ask for
            race = RaceTiming(
                request, asked, GROW.race, line, contestant, self._calls,
                may_finish=self._checked.verified is not False,
                warm_again=(lambda: self._warm(spare)) if self._turns else None, stop=self._stop,
            )  # fmt: skip
            self._watch.begin()
            for event in race.events(drawing, self._watch, lambda: None):
                self._check_stop()
                yield event
            self._watch.end()
        self._race, self._samples_s = race, race.samples_s
        self._starts, self._spent_s = [0], math.fsum(race.samples_s) * self._calls

    def _warm(self, spare: QuickDrawing) -> None:
        """Bring the device back to its speed with steps that do not count."""
        until_s = time.perf_counter() + _WARM_AGAIN_S
        while time.perf_counter() < until_s:
            spare.time(None, 1)

    def _race_finished(self) -> Event:
        race = self._race
        return self._finished(
            GrowWork(), {}, slices_s=tuple(race.slices_s[:MOST_ROUNDS]),
            outcome=race.outcome(), curves=race.curves(),
        )  # fmt: skip
