"""The CUDA C of the workload `custom_kernel`, for every dtype and without headers.

NVRTC finds NVIDIA's headers only if a toolkit is installed, so this code converts the two short
types itself: float16 with the hardware's conversion, bfloat16 as the upper half of a float32,
rounded to nearest, ties to even.
"""

from __future__ import annotations

NAME = "my_kernel"

_FLOAT = """\
typedef float stored;
typedef float real;
__device__ real load(stored x) { return x; }
__device__ stored store(real x) { return x; }
"""

_DOUBLE = """\
typedef double stored;
typedef double real;
__device__ real load(stored x) { return x; }
__device__ stored store(real x) { return x; }
"""

_HALF = """\
typedef unsigned short stored;
typedef float real;
__device__ real load(stored x) {
    real y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ stored store(real x) {
    stored y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
"""

_BFLOAT = """\
typedef unsigned short stored;
typedef float real;
__device__ real load(stored x) { return __uint_as_float((unsigned)x << 16); }
__device__ stored store(real x) {
    unsigned bits = __float_as_uint(x);
    return (stored)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
"""

_KERNEL = """\
extern "C" __global__ void my_kernel(const stored* A, const stored* B, const stored* C, stored* Y,
                                     long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    real a = load(A[i]), b = load(B[i]), c = load(C[i]);
    real y0 = a + b;
    real y1 = y0 + c;
    real y2 = y1 * a;
    real y3 = y2 - b;
    real y4 = y2 + y3;
    real y5 = (real)0.33 * a + (real)0.66 * b + c * (real)0.9;
    Y[i] = store(y4 + y5);
}
"""

_TYPES = {"float16": _HALF, "bfloat16": _BFLOAT, "float32": _FLOAT, "float64": _DOUBLE}


def source_for(dtype: str) -> str:
    """Return the source for a dtype: its type, then the kernel `NAME`."""
    return _TYPES[dtype] + _KERNEL


# The functions are those of "NVRTC" and the "CUDA Driver API" of NVIDIA's documentation.
COMPILING = """\
import ctypes
import sys
import time
import torch

source = r'''
{source}'''
device, dtype = "{device}", torch.{dtype}
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
"""
"""The first lines of a script with a kernel of its own: compile it and load it."""

SNIPPET = (
    COMPILING
    + """\
size = {size}
a, b, c = (torch.rand(size, size, device=device, dtype=dtype) for _ in range(3))
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
)
