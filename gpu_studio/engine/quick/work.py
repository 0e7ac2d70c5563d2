"""The workloads without PyTorch: their numbers, a shader for an adapter, NumPy for the CPU.

Both sides get the same numbers, and both results are checked. On the CPU, all cores work.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from gpu_studio.core.benchmark.workloads import ELEMENTWISE, LAUNCH, MATMUL
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.core.units import format_bytes, format_duration
from gpu_studio.engine.quick import shaders
from gpu_studio.engine.quick.compute import BoundShader
from gpu_studio.engine.stopwatch import CpuStopwatch
from gpu_studio.engine.verification import Verification, numbers_compared
from gpu_studio.engine.workloads.call import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpu_studio.engine.quick.compute import Compute

DTYPES = ("float32", "float16")
_SEED = 20250301
_MIB = 1 << 20
# Temporaries of this many numbers stay in a core's own cache.
_BLOCK = 1 << 14
_ELEMENT_EPS = 20.0
_CHECKS = 2
_WAITS = 9


class Counted(NamedTuple):
    """The work of one call: bytes that it reads and writes, and its amount for the throughput."""

    bytes_moved: float
    amount: float


class QuickTimed(Call):
    """What is timed on one device, and is its own stopwatch (`stopwatch.Stopwatch`)."""

    is_made_anew = True

    def __call__(self) -> object:
        return self.time(self, 1)

    @abstractmethod
    def time(self, call: object, calls: int) -> tuple[float, float]:
        """Return the seconds of a batch: by the device's clock, and by the wall clock."""

    @abstractmethod
    def result(self) -> NDArray[Any]:
        """Return the numbers that the calls so far have left, on the CPU."""

    @abstractmethod
    def verified(self, found: NDArray[Any]) -> Verification:
        """Compare a result with the right one."""

    def missing(self) -> str:
        """Return how many calls never happened, in words; empty if none, or if unknown."""
        return ""


class QuickWorkload(ABC):
    """A workload for an adapter's shader and for NumPy."""

    description: WorkloadDescription
    shader = ""
    is_each_submitted = False

    @abstractmethod
    def count(self, size: int, dtype: str) -> Counted:
        """Return the work of a call."""

    @abstractmethod
    def operands(self, size: int, dtype: str) -> list[NDArray[Any]]:
        """Return the numbers of a call, always the same; the last is the result's place."""

    @abstractmethod
    def groups(self, size: int, dtype: str) -> int | tuple[int, int]:
        """Return how many groups a dispatch of the shader starts."""

    @abstractmethod
    def compute(self, operands: list[NDArray[Any]]) -> Callable[[], object]:
        """Return one call of NumPy, which writes the last of the operands."""

    @abstractmethod
    def check(self, operands: list[NDArray[Any]], found: NDArray[Any], calls: int) -> Verification:
        """Compare a result with the right one.

        Args:
            operands: see above.
            found: the result.
            calls: how many calls have made it.
        """

    def check_size(self, size: int) -> None:  # noqa: B027 - most have any
        """Raise `StudioError` for a size that the work does not have."""

    def code(self, size: int, dtype: str) -> str:
        """Return the shader for a case."""
        return shaders.shader(self.shader, dtype)

    def on_adapter(
        self, size: int, dtype: str, operands: list[NDArray[Any]], compute: Compute
    ) -> AdapterCall:
        """Make what an adapter does, in new memory of its own."""
        return AdapterCall(self, operands, compute, size, dtype)

    def on_cpu(self, operands: list[NDArray[Any]], threads: int) -> NumpyCall:
        """Make what NumPy does, in new memory, on all cores."""
        return NumpyCall(self, operands)


class QuickCall(QuickTimed):
    """One prepared call of a workload on one device.

    Args:
        work: the workload.
        operands: its numbers.
    """

    calls = 0
    """How many were made."""

    def __init__(self, work: QuickWorkload, operands: list[NDArray[Any]]) -> None:
        self._work, self._operands = work, operands

    def verified(self, found: NDArray[Any]) -> Verification:
        return self._work.check(self._operands, found, self.calls)


class AdapterCall(QuickCall):
    """A workload's shader on an adapter.

    Args:
        work: the workload.
        operands: its numbers.
        compute: the adapter.
        size: of the case.
        dtype: of the case.
    """

    def __init__(
        self,
        work: QuickWorkload,
        operands: list[NDArray[Any]],
        compute: Compute,
        size: int,
        dtype: str,
    ) -> None:
        super().__init__(work, operands)
        self._compute = compute
        self._shape, self._dtype = operands[-1].shape, operands[-1].dtype
        buffers = [compute.buffer(one) for one in operands]
        self._result = buffers[-1]
        self._shader = BoundShader(
            compute, work.code(size, dtype), buffers, work.groups(size, dtype)
        )

    def time(self, call: object, calls: int) -> tuple[float, float]:
        self.calls += calls
        is_each = self._work.is_each_submitted
        return self._compute.batch([self._shader], calls, is_each_submitted=is_each)

    def result(self) -> NDArray[Any]:
        found = self._compute.read(self._result, str(self._dtype))
        shaped: NDArray[Any] = found[: math.prod(self._shape)].reshape(self._shape)
        return shaped

    def missing(self) -> str:
        done = int(self._compute.read(self._shader.done, "uint32")[0])
        return "" if done == self.calls else f"{done} of {self.calls} calls were made"

    def findings(self) -> tuple[str, ...]:
        if not self._work.is_each_submitted:
            return ()
        waits_s = [self.time(None, 1)[1] for _ in range(_WAITS)]
        return (
            f"Launching and waiting for one call takes {format_duration(median(waits_s))}. If the "
            "CPU needs less time for an operation, this cannot be faster.",
        )

    def close(self) -> None:
        self._shader.close()


class NumpyCall(QuickCall):
    """A workload in NumPy on all cores; see `QuickCall`. The result's place is written."""

    def __init__(self, work: QuickWorkload, operands: list[NDArray[Any]]) -> None:
        super().__init__(work, operands)
        self._own = [*operands[:-1], operands[-1].copy()]
        self._call = work.compute(self._own)
        self._stopwatch = CpuStopwatch()

    def time(self, call: object, calls: int) -> tuple[float, float]:
        self.calls += calls
        return self._stopwatch.time(self._call, calls)

    def result(self) -> NDArray[Any]:
        found: NDArray[Any] = self._own[-1]
        return found

    def close(self) -> None:
        self._own = []


def core_count() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _on_all_cores(length: int, work: Callable[[slice], object]) -> Callable[[], object]:
    """Return a call that works on all numbers, a slice for each core; NumPy frees the GIL."""
    cores = core_count()
    if length < 2 * _BLOCK or cores == 1:
        return partial(work, slice(0, length))
    step = -(-length // cores)
    slices = [slice(at, min(at + step, length)) for at in range(0, length, step)]
    pool = ThreadPoolExecutor(len(slices))  # ends with its last call
    return lambda: list(pool.map(work, slices))


class QuickCopy(QuickWorkload):
    """A copy within the memory."""

    shader = shaders.COPY
    description = WorkloadDescription(
        name="copy",
        title="Copy",
        sentence=(
            "Copies numbers within the device's memory and computes nothing, so the memory's speed "
            "decides. The bytes read and written count."
        ),
        dtypes=("float32",),
        sizes=(1, 4, 16, 64),
        throughput_unit="B/s",
        size_title="MiB to copy",
        size_text="{size} MiB",
    )

    def count(self, size: int, dtype: str) -> Counted:
        return Counted(2.0 * size * _MIB, 2.0 * size * _MIB)

    def operands(self, size: int, dtype: str) -> list[NDArray[Any]]:
        numbers = np.arange(size * _MIB // 4, dtype=np.uint32)
        return [numbers * np.uint32(2654435761), np.zeros_like(numbers)]

    def groups(self, size: int, dtype: str) -> int:
        return size * _MIB // 16 // shaders.GROUP

    def compute(self, operands: list[NDArray[Any]]) -> Callable[[], object]:
        source, target = operands
        return _on_all_cores(len(source), lambda part: np.copyto(target[part], source[part]))

    def check(self, operands: list[NDArray[Any]], found: NDArray[Any], calls: int) -> Verification:
        wrong = int(np.count_nonzero(found != operands[0]))
        finding = "every bit arrived"
        if wrong:
            finding = f"{wrong} of {found.size} numbers did not arrive"
        return Verification(not wrong, finding, (f"all of {format_bytes(found.nbytes)}",))


class QuickElementwise(QuickWorkload):
    """The ten statements of `workloads.elementwise`, in one pass over the memory."""

    shader = shaders.ELEMENTWISE
    description = msgspec.structs.replace(
        ELEMENTWISE,
        dtypes=DTYPES,
        options=(
            WorkloadOption(
                name="form",
                title="Style",
                sentence="All lines in one pass over the memory.",
                values=("one pass",),
            ),
        ),
    )

    def count(self, size: int, dtype: str) -> Counted:
        moved = 4.0 * size**2 * ITEM_BYTES[dtype]
        return Counted(moved, moved)

    def operands(self, size: int, dtype: str) -> list[NDArray[Any]]:
        random = np.random.default_rng(_SEED)
        length = -(-(size**2) // 4) * 4
        three = [random.random(length, dtype=np.float32).astype(dtype) for _ in range(3)]
        return [*three, np.zeros(length, dtype)]

    def groups(self, size: int, dtype: str) -> int:
        return -(-(size**2) // (4 * shaders.GROUP))

    def compute(self, operands: list[NDArray[Any]]) -> Callable[[], object]:
        a, b, c, target = operands

        def work(part: slice) -> None:
            for at in range(part.start, part.stop, _BLOCK):
                block = slice(at, min(at + _BLOCK, part.stop))
                _crunch(a[block], b[block], c[block], target[block])

        return _on_all_cores(len(a), work)

    def check(self, operands: list[NDArray[Any]], found: NDArray[Any], calls: int) -> Verification:
        expected = np.zeros(found.shape)
        a, b, c = (one.astype(np.float64) for one in operands[:3])
        _crunch(a, b, c, expected)
        eps, side = float(np.finfo(found.dtype).eps), round(found.size**0.5)
        compared = (f"all of {side} × {side}",)
        return numbers_compared(
            found.astype(np.float64), expected, eps, _ELEMENT_EPS * eps, compared
        )


def _crunch(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], target: NDArray[Any]) -> None:
    """Write y4 + y5 of the ten statements; the type's own constants."""
    kind = a.dtype.type
    y2 = a + b
    y2 += c
    y2 *= a
    np.add(y2, y2, out=target)
    target -= b
    np.multiply(a, kind(0.33), out=y2)
    target += y2
    np.multiply(b, kind(0.66), out=y2)
    target += y2
    np.multiply(c, kind(0.9), out=y2)
    target += y2


class QuickMatmul(QuickWorkload):
    """The product of two square matrices of whole numbers, which is exact in any order."""

    shader = shaders.MATMUL
    description = msgspec.structs.replace(MATMUL, dtypes=DTYPES)

    def count(self, size: int, dtype: str) -> Counted:
        matrix_bytes = size**2 * ITEM_BYTES[dtype]
        return Counted(3.0 * matrix_bytes, 2.0 * size**3)

    def operands(self, size: int, dtype: str) -> list[NDArray[Any]]:
        """Return matrices whose side is a multiple of a group's, with zeros beyond the size."""
        random = np.random.default_rng(_SEED)
        side = _padded(size)
        left, right = _largest_factors(size, dtype)
        factors = []
        for largest in (left, right):
            whole = random.integers(-largest, largest, (size, size), dtype=np.int16, endpoint=True)
            matrix = np.zeros((side, side), dtype)
            matrix[:size, :size] = whole
            factors.append(matrix)
        return [*factors, np.zeros((side, side), dtype)]

    def groups(self, size: int, dtype: str) -> tuple[int, int]:
        return _padded(size) // shaders.TILE, _padded(size) // shaders.TILE

    def code(self, size: int, dtype: str) -> str:
        return shaders.shader(self.shader, dtype, _padded(size))

    def compute(self, operands: list[NDArray[Any]]) -> Callable[[], object]:
        a, b, target = operands
        if a.dtype == np.float32:
            return lambda: np.matmul(a, b, out=target)
        # NumPy has no fast product in float16: it computes in float32, as the shader does.
        return lambda: np.copyto(target, a.astype(np.float32) @ b.astype(np.float32))

    def check(self, operands: list[NDArray[Any]], found: NDArray[Any], calls: int) -> Verification:
        """Multiply both sides by whole numbers, which are exact: any wrong product shows."""
        a, b = (one.astype(np.float64) for one in operands[:2])
        random = np.random.default_rng(_SEED + 1)
        vectors = random.integers(1, 1 << 12, (a.shape[1], _CHECKS)).astype(np.float64)
        wrong = (found.astype(np.float64) @ vectors) != (a @ (b @ vectors))
        rows = int(np.count_nonzero(wrong.any(axis=1)))
        side = len(a)
        finding = "exact for whole numbers"
        if rows:
            finding = f"{rows} of {side} rows of whole numbers are wrong"
        return Verification(not rows, finding, (f"all of {side} × {side}",))


def _padded(size: int) -> int:
    return -(-size // shaders.TILE) * shaders.TILE


def _largest_factors(size: int, dtype: str) -> tuple[int, int]:
    """Return the largest factors whose sums the type holds exactly, in any order."""
    if dtype == "float32":
        right = 15
        return max(1, min(255, (1 << 24) // (right * size))), right
    # Of many random products, a sum is far from its largest: 7 deviations have room here.
    largest = 3 if size <= 4096 else 1
    return largest, largest


class QuickLaunch(QuickWorkload):
    """Changes the sign of one number; each call goes to the driver by itself."""

    shader = shaders.LAUNCH
    is_each_submitted = True
    description = msgspec.structs.replace(LAUNCH, dtypes=("float32",))

    def count(self, size: int, dtype: str) -> Counted:
        return Counted(2.0 * ITEM_BYTES[dtype], 1.0)

    def check_size(self, size: int) -> None:
        if size != 1:
            raise StudioError(FailureKind.BAD_REQUEST, "launch has only the size 1.")

    def operands(self, size: int, dtype: str) -> list[NDArray[Any]]:
        return [np.full(4, 1.25, dtype)]

    def groups(self, size: int, dtype: str) -> int:
        return 1

    def compute(self, operands: list[NDArray[Any]]) -> Callable[[], object]:
        number = operands[0][:1]
        return lambda: np.negative(number, out=number)

    def check(self, operands: list[NDArray[Any]], found: NDArray[Any], calls: int) -> Verification:
        expected = -operands[0][0] if calls % 2 else operands[0][0]
        is_right = bool(found[0] == expected)
        finding = "exact in every bit"
        if not is_right:
            finding = f"the number is {found[0]:g}, not {expected:g}"
        return Verification(is_right, finding, ("all of 1 number",))


QUICK_WORKS: tuple[QuickWorkload, ...] = (
    QuickElementwise(),
    QuickMatmul(),
    QuickCopy(),
    QuickLaunch(),
)


def find_quick_work(name: str) -> QuickWorkload:
    """Return the workload of this name; raises `StudioError` with the known names."""
    for work in QUICK_WORKS:
        if work.description.name == name:
            return work
    names = ", ".join(work.description.name for work in QUICK_WORKS)
    message = f"Without PyTorch, there is no {name[:20]}: choose {names}."
    raise StudioError(FailureKind.BAD_REQUEST, message)
