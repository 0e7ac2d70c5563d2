"""One open adapter: its buffers, its shaders, and batches of dispatches with their times."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_studio.core.failure import FailureKind, StudioError, first_line
from gpu_studio.core.uncollected import uncollected
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.quick.adapters import largest_buffer_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpu_studio.core.messages.engine_messages import Adapter
    from gpu_studio.engine.quick.adapters import FoundAdapter

_CLOCK = "timestamp-query"
_WANTED = (_CLOCK, "shader-f16")
_MOST_GROUPS = 65535
# A clock whose times do not fit into those of the wall is not used.
_CLOCK_WITHIN = 1.02
_log = logging.getLogger(__name__)


class AdapterLostError(StudioError):
    """The driver has reset the adapter: this process cannot use it any more."""


class Compute:
    """An adapter that this process has opened; a context manager.

    Args:
        found: the adapter.
        card: the identity of the card that it is, for the sensor; None if that is not known.
    """

    def __init__(self, found: FoundAdapter, card: str | None = None) -> None:
        import wgpu

        self.card = card

        self._wgpu = wgpu
        self.adapter: Adapter = found.facts
        limits = found.handle.limits
        names = ("max-buffer-size", "max-storage-buffer-binding-size")
        self.device = found.handle.request_device_sync(
            required_features=[one for one in _WANTED if one in found.handle.features],
            required_limits={name: limits[name] for name in names},
        )
        self._largest_bytes = largest_buffer_bytes(limits)
        self._pipelines: dict[str, Any] = {}
        self._tick_s = self._tick()
        if self._tick_s:
            usage = wgpu.BufferUsage
            self._marks = self.device.create_query_set(type="timestamp", count=2)
            self._resolved = self.device.create_buffer(
                size=16, usage=usage.QUERY_RESOLVE | usage.COPY_SRC
            )

    def __enter__(self) -> Compute:
        return self

    def __exit__(self, *_: object) -> None:
        self.device.destroy()

    def _tick(self) -> float | None:
        """Return the seconds of a tick of the adapter's clock; None if it has none."""
        if not self.adapter.has_clock:
            return None
        try:
            from wgpu.backends.wgpu_native import lib

            return float(lib.wgpuQueueGetTimestampPeriod(self.device.queue._internal)) * 1e-9
        except (ImportError, AttributeError) as error:
            _log.warning("This wgpu does not tell the period of a clock: %s", error)
            return None

    def buffer(self, contents: NDArray[Any] | int) -> Any:
        """Return a buffer with these numbers, or of so many bytes, all zero.

        Raises:
            StudioError: the adapter's buffers are smaller.
        """
        size = contents if isinstance(contents, int) else contents.nbytes
        if size > self._largest_bytes:
            raise StudioError(
                FailureKind.TOO_LARGE,
                f"This needs a buffer of {format_bytes(size)}; {self.adapter.title} has "
                f"{format_bytes(self._largest_bytes)} at most. Choose a smaller size.",
            )
        usage = self._wgpu.BufferUsage
        flags = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        if isinstance(contents, int):
            return self.device.create_buffer(size=-(-size // 16) * 16, usage=flags)
        return self.device.create_buffer_with_data(data=np.ascontiguousarray(contents), usage=flags)

    def pipeline(self, code: str) -> Any:
        """Return a shader, compiled once."""
        if code not in self._pipelines:
            module = self.device.create_shader_module(code=code)
            self._pipelines[code] = self.device.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": "main"}
            )
        return self._pipelines[code]

    def read(self, buffer: Any, dtype: str) -> NDArray[Any]:
        """Return the numbers in a buffer."""
        return np.frombuffer(self.device.queue.read_buffer(buffer), dtype)

    def batch(
        self, bounds: Sequence[BoundShader], calls: int, *, is_each_submitted: bool
    ) -> tuple[float, float]:
        """Dispatch a shader several times; return the seconds by its own clock, and by the wall.

        Both are the wall's where the adapter has no clock, or one that cannot be right.

        Args:
            bounds: the shader; of several, each follows the one before it.
            calls: how often.
            is_each_submitted: whether each dispatch goes to the driver by itself.
        """
        with uncollected():
            start_s = time.perf_counter()
            self.submit(bounds, calls, is_each_submitted=is_each_submitted)
            self.device.queue.on_submitted_work_done_sync()
            wall_s = time.perf_counter() - start_s
        # Only now: a driver takes as long for these two numbers as for a short batch.
        own_s = self._between_marks_s() if self._tick_s else wall_s
        return (own_s if 0 < own_s <= _CLOCK_WITHIN * wall_s else wall_s), wall_s

    def submit(
        self, bounds: Sequence[BoundShader], calls: int = 1, *, is_each_submitted: bool = False
    ) -> None:
        """Let the adapter begin with a batch; a later `read` waits for its end. See `batch`."""
        times = range(calls) if is_each_submitted else range(1)
        for number in times:
            encoder = self.device.create_command_encoder()
            writes = self._writes(number == 0, number == len(times) - 1)
            asked = encoder.begin_compute_pass(**writes)
            bound = bounds[0]
            bound.begin(asked)
            for turn in range(1 if is_each_submitted else calls):
                if len(bounds) > 1:
                    bound = bounds[turn % len(bounds)]
                    bound.begin(asked)
                asked.dispatch_workgroups(*bound.groups)
            asked.end()
            self.device.queue.submit([encoder.finish()])

    def _writes(self, is_first: bool, is_last: bool) -> dict[str, Any]:
        """Return what a pass is told about the clock."""
        if not self._tick_s or not (is_first or is_last):
            return {}
        places = {"beginning_of_pass_write_index": 0} if is_first else {}
        if is_last:
            places["end_of_pass_write_index"] = 1
        return {"timestamp_writes": {"query_set": self._marks, **places}}

    def _between_marks_s(self) -> float:
        """Return the seconds between the beginning and the end of the last batch."""
        assert self._tick_s
        encoder = self.device.create_command_encoder()
        encoder.resolve_query_set(self._marks, 0, 2, self._resolved, 0)
        self.device.queue.submit([encoder.finish()])
        first, last = self.read(self._resolved, "uint64")
        return (int(last) - int(first)) * self._tick_s

    def is_own(self, error: Exception) -> bool:
        """Return whether an error is of wgpu."""
        return isinstance(error, self._wgpu.GPUError)

    def explained(self, error: Exception) -> Exception:
        """Return an error of wgpu as a sentence."""
        if isinstance(error, StudioError) or not self.is_own(error):
            return error
        text, name = str(error), self.adapter.title
        if isinstance(error, self._wgpu.GPUOutOfMemoryError) or "memory" in text.lower():
            message = f"{name} has no memory for this. Choose a smaller size."
            return StudioError(FailureKind.OUT_OF_MEMORY, message)
        if "lost" in text.lower():
            return AdapterLostError(
                FailureKind.CUDA_ERROR,
                f"The driver has reset {name} in the middle of the work. Try once more; if it "
                "happens again, update the graphics driver, and check the card's power and heat.",
            )
        reason = first_line(text, 200)
        return StudioError(FailureKind.INTERNAL, f"The driver of {name} refused the work: {reason}")


class BoundShader:
    """A compiled shader with its buffers; the first of them counts its dispatches."""

    def __init__(
        self, compute: Compute, code: str, buffers: Sequence[Any], groups: int | tuple[int, int]
    ) -> None:
        self.done = compute.buffer(16)
        self._buffers = [self.done, *buffers]
        self.groups = groups if isinstance(groups, tuple) else _grid(groups)
        self._pipeline = compute.pipeline(code)
        self._bindings = compute.device.create_bind_group(
            layout=self._pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": place, "resource": {"buffer": buffer}}
                for place, buffer in enumerate(self._buffers)
            ],
        )

    def begin(self, asked: Any) -> None:
        """Let a pass use this shader."""
        asked.set_pipeline(self._pipeline)
        asked.set_bind_group(0, self._bindings)

    def close(self) -> None:
        """Free the buffers."""
        for buffer in self._buffers:
            buffer.destroy()


def _grid(groups: int) -> tuple[int, int]:
    """Return two dimensions with at least so many groups."""
    rows = -(-groups // _MOST_GROUPS)
    return -(-groups // rows), rows
