"""A custom CUDA kernel, compiled while the program runs: the ten statements in one kernel.

The 1024 × 1024 matrices and the name `my_kernel` are from "How can I switch from CPU to GPU
PyTorch?" (answer of 2025-01-30), which leaves the kernel to the reader. Here it does the ten
statements of `elementwise`: it reads three numbers and writes one, whatever lies between.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.claim import SAME_WITHIN
from gpu_studio.core.benchmark.workloads import CUSTOM_KERNEL
from gpu_studio.core.statistics import ratio_interval
from gpu_studio.core.units import format_duration, format_ratio
from gpu_studio.engine.device import accelerator, accelerator_of, accelerator_state
from gpu_studio.engine.nvrtc import DriverModule, Nvrtc, why_no_compiler
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.elementwise import Elementwise, crunch_the_numbers
from gpu_studio.engine.workloads.proof import verify_rows
from gpu_studio.engine.workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.engine.verification import Verification

_NAME = "my_kernel"
_OPERATIONS = 14
_MATRICES = 4
_STATEMENTS = Elementwise()
# The reference rounds as well, but in float64.
_ALLOWED = _STATEMENTS.tolerance_eps * torch.finfo(torch.float32).eps
# The interval of nine ratios leaves out the lowest and the highest.
_COMPARED_CALLS, _ROUNDS = 10, 9


class CustomKernel(Workload):
    """One fused kernel for this work; see `workload.Workload`."""

    description = CUSTOM_KERNEL

    def skipped(self) -> str:
        """Return why no kernel can be compiled or run here; empty if it can."""
        state = accelerator_state()
        if not state.is_available:
            return (
                f"{state.reason} It needs an NVIDIA card, its driver and a CUDA build of PyTorch, "
                "and nothing else."
            )
        return accelerator().lacks("custom kernels") or why_no_compiler()

    def work(self, case: Case) -> Work:
        """Count the operations, and one pass over three operands and the result."""
        matrices_bytes = _MATRICES * case.size**2 * case.item_bytes
        return Work(
            operations=float(_OPERATIONS * case.size**2),
            bytes_moved=float(matrices_bytes),
            throughput_work=float(matrices_bytes),
            memory_bytes=matrices_bytes,
        )

    def prepare(self, case: Case) -> Call:
        shape = (case.size, case.size)
        operands = [torch.rand(shape, device=case.device, dtype=case.dtype) for _ in range(3)]
        return CustomKernelCall(case, operands)

    def verify(self, case: Case) -> Verification:
        """Compare with the ten statements in float64 on the CPU."""

        def compute(*operands: torch.Tensor) -> torch.Tensor:
            with contextlib.closing(CustomKernelCall(case, operands)) as call:
                call()
                return call.result

        shapes = _STATEMENTS.shapes(case)
        return verify_rows(case, shapes, compute, _STATEMENTS.reference, _ALLOWED)

    def snippet(self, case: Case) -> str:
        return _SNIPPET.format(
            source=SOURCE,
            size=case.size,
            device=case.address,
            threads=case.options["threads"],
            name=_NAME,
        )


class CustomKernelCall(Call):
    """A launch of the kernel; its code stays on the card until `close`.

    Args:
        case: the device, the size, and the number of threads.
        operands: three contiguous matrices on the card.
    """

    def __init__(self, case: Case, operands: Sequence[torch.Tensor]) -> None:
        self._device = case.device
        self._operands = operands
        self.result = torch.empty_like(operands[0])
        major, minor = torch.cuda.get_device_capability(case.device)
        started_s = time.perf_counter()
        self._code = Nvrtc().compile(SOURCE, 10 * major + minor)
        self._compile_s = time.perf_counter() - started_s
        self._module = DriverModule(case.device, self._code.image)
        threads = int(case.options["threads"])
        elements = self.result.numel()
        addresses = [ctypes.c_void_p(one.data_ptr()) for one in (*operands, self.result)]
        self._launch = self._module.kernel(
            _NAME, -(-elements // threads), threads, [*addresses, ctypes.c_longlong(elements)]
        )

    def __call__(self) -> object:
        """Launch the kernel; the card may still be working when this returns."""
        self._launch()
        return self.result

    def findings(self) -> tuple[str, ...]:
        stopwatch = accelerator_of(self._device).stopwatch(self._device)

        def ten_statements() -> object:
            return crunch_the_numbers(*self._operands)

        ten_statements()
        rounds_s = []
        for _ in range(_ROUNDS):
            own_s, _ = stopwatch.time(self, _COMPARED_CALLS)
            torch_s, _ = stopwatch.time(ten_statements, _COMPARED_CALLS)
            rounds_s.append((own_s / _COMPARED_CALLS, torch_s / _COMPARED_CALLS))
        return (
            f"{self._code.compiler} compiled it for {self._code.architecture} in "
            f"{format_duration(self._compile_s)}.",
            _compared(rounds_s),
        )

    def close(self) -> None:
        self._module.close()


def _compared(rounds_s: Sequence[tuple[float, float]]) -> str:
    """Return how long PyTorch's own kernels took beside this kernel, with the uncertainty.

    Args:
        rounds_s: seconds of a call of this kernel and of the ten lines, taken in turns.
    """
    torch_s = median(ten_lines_s for _, ten_lines_s in rounds_s)
    ratio = median(ten_lines_s / own_s for own_s, ten_lines_s in rounds_s)
    ours_s, ten_lines_s = zip(*rounds_s, strict=True)
    low, high = ratio_interval(ten_lines_s, ours_s, ratio)
    if low >= SAME_WITHIN or high <= 1 / SAME_WITHIN:
        times = (
            f"{format_ratio(ratio)} as long (95\u202f% interval {format_ratio(low)} to "
            f"{format_ratio(high)})"
        )
    else:
        times = "which is too close to call"
    return (
        f"PyTorch's own {_OPERATIONS} kernels for the same ten lines took "
        f"{format_duration(torch_s)}, {times}: {len(rounds_s)} rounds of {_COMPARED_CALLS} calls "
        "each, in turns."
    )


SOURCE = """\
extern "C" __global__ void my_kernel(const float* A, const float* B, const float* C, float* Y,
                                     long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = A[i], b = B[i], c = C[i];
    float y0 = a + b;
    float y1 = y0 + c;
    float y2 = y1 * a;
    float y3 = y2 - b;
    float y4 = y2 + y3;
    float y5 = 0.33f * a + 0.66f * b + c * 0.9f;
    Y[i] = y4 + y5;
}
"""


# The functions are those of "NVRTC" and the "CUDA Driver API" of NVIDIA's documentation.
_SNIPPET = """\
import ctypes
import sys
import time
import torch

source = r'''
{source}'''
device = "{device}"
windows, cuda = sys.platform == "win32", torch.version.cuda.split(".")[0]
nvrtc = ctypes.CDLL(f"nvrtc64_{{cuda}}0_0.dll" if windows else f"libnvrtc.so.{{cuda}}")
driver = ctypes.CDLL("nvcuda.dll" if windows else "libcuda.so.1")
torch.cuda.set_device(device)
torch.cuda.synchronize()  # creates the context

# Compile the source for this card ...
program, length = ctypes.c_void_p(), ctypes.c_size_t()
major, minor = torch.cuda.get_device_capability()
options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{{major}}{{minor}}".encode())
nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"{name}.cu", 0, None, None)
if nvrtc.nvrtcCompileProgram(program, 1, options):
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(length))
    log = ctypes.create_string_buffer(length.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    raise SystemExit(log.value.decode())
nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(length))
code = ctypes.create_string_buffer(length.value)
nvrtc.nvrtcGetCUBIN(program, code)

# ... load it, and launch it with a thread for each element.
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuModuleLoadData(ctypes.byref(module), code) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"{name}") == 0
size = {size}
a, b, c = (torch.rand(size, size, device=device) for _ in range(3))
y = torch.empty_like(a)
values = [ctypes.c_void_p(x.data_ptr()) for x in (a, b, c, y)] + [ctypes.c_longlong(y.numel())]
addresses = (ctypes.c_void_p * 5)(*map(ctypes.addressof, values))
stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
grid, block = (-(-y.numel() // {threads}), 1, 1), ({threads}, 1, 1)


def my_kernel():
    assert driver.cuLaunchKernel(function, *grid, *block, 0, stream, addresses, None) == 0


my_kernel()  # the first call is slower
torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(10):
    my_kernel()
torch.cuda.synchronize()
print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
"""
