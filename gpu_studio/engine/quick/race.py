"""The picture of a race without PyTorch: the growing pattern, by an adapter or by NumPy."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE
from gpu_studio.core.race import gray_scott
from gpu_studio.core.race.pictures import GROW, wide_height
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.engine.quick import shaders
from gpu_studio.engine.quick.compute import BoundShader
from gpu_studio.engine.quick.work import Counted, QuickTimed, core_count
from gpu_studio.engine.stopwatch import CpuStopwatch
from gpu_studio.engine.verification import Verification, within_rounding
from gpu_studio.engine.workloads.call import Drawing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpu_studio.engine.quick.compute import Compute

    State = NDArray[Any]

_SIZES = (8, 4096)


class QuickDrawing(QuickTimed, Drawing):
    """The pattern in progress; each call is a step.

    Args:
        begin: both substances before the first step, shape (height, width, 2).
    """

    def __init__(self, begin: State) -> None:
        self._begin, self.size = begin, begin.shape[1]
        self.steps = 0

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

    @property
    def _checked_steps(self) -> int:
        return gray_scott.CHECKED_STEPS if self.size <= 256 else 2

    def result(self) -> State:
        """Return the state after some steps from the beginning."""
        self.restart()
        for _ in range(self._checked_steps):
            self()
        return self.state()

    def verified(self, found: State) -> Verification:
        """Compare some steps with the same in float64 by NumPy."""
        steps = self._checked_steps
        begin = gray_scott.planted(self.size).astype(np.float64)
        with contextlib.closing(NumpyGrow(begin, core_count())) as reference:
            off = float(np.abs(found - reference.result()).max())
        allowed = gray_scott.EPS_PER_STEP * steps * float(np.finfo(np.float32).eps)
        compared = f"all of {self.size} × {wide_height(self.size)} after {steps} steps"
        return within_rounding(off, allowed, (compared,))


class AdapterGrow(QuickDrawing):
    """The pattern on an adapter: each step reads one buffer and writes the other."""

    def __init__(self, begin: State, compute: Compute) -> None:
        super().__init__(begin)
        self._compute = compute
        height, size, _ = begin.shape
        self._buffers = [compute.buffer(begin) for _ in range(2)]
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

    def __init__(self, begin: State, threads: int) -> None:
        super().__init__(begin)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._stopwatch = CpuStopwatch()
        self.restart()

    def restart(self) -> None:
        self.steps = 0
        self._now = _wrapped(self._begin)

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


class GrowWork:
    """The growing pattern, with the methods of `work.QuickWorkload` that a run uses."""

    description = msgspec.structs.replace(GROW, dtypes=("float32",))

    def count(self, size: int, dtype: str) -> Counted:
        """Return the work of a step; each number comes from the memory once, and goes there."""
        moved = 4.0 * ITEM_BYTES[dtype] * size * wide_height(size)
        return Counted(moved, moved)

    def check_size(self, size: int) -> None:
        least, most = _SIZES
        if not least <= size <= most:
            message = f"{GROW.name} takes sizes from {least} to {most}, not {size}."
            raise StudioError(FailureKind.BAD_REQUEST, message)

    def operands(self, size: int, dtype: str) -> list[NDArray[Any]]:
        return [gray_scott.planted(size).astype(dtype)]

    def on_adapter(
        self, size: int, dtype: str, operands: list[NDArray[Any]], compute: Compute
    ) -> AdapterGrow:
        return AdapterGrow(operands[0], compute)

    def on_cpu(self, operands: list[NDArray[Any]], threads: int) -> NumpyGrow:
        return NumpyGrow(operands[0], threads)


def find_quick_picture(name: str) -> GrowWork:
    """Return the picture of this name; raises `StudioError` with the one that there is."""
    if name == GROW.name:
        return GrowWork()
    message = f"Without PyTorch, there is only the race {GROW.name}."
    raise StudioError(FailureKind.BAD_REQUEST, message)
