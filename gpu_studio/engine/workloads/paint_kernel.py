"""Paint a tile of the Mandelbrot set with one custom CUDA kernel, compiled while the program runs.

PyTorch launches a kernel for each operation of each iteration; this kernel does all of them for a
pixel without leaving the processor. Each operation rounds by itself, as in PyTorch: the functions
with ``_rn`` are never fused into a multiply-add, so both paint the same counts.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import torch

from gpu_studio.engine.nvrtc import DriverModule, Nvrtc
from gpu_studio.engine.workloads.custom_kernel_code import COMPILING

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case

_NAME = "paint_tile"
_THREADS = 256
_TYPES = {
    "float32": """\
typedef float real;
__device__ real plus(real a, real b) { return __fadd_rn(a, b); }
__device__ real times(real a, real b) { return __fmul_rn(a, b); }
""",
    "float64": """\
typedef double real;
__device__ real plus(real a, real b) { return __dadd_rn(a, b); }
__device__ real times(real a, real b) { return __dmul_rn(a, b); }
""",
}
_KERNEL = """\
extern "C" __global__ void paint_tile(unsigned char* canvas, int width, int side, int left, int top,
                                      int iterations, real first_across, real first_down,
                                      real pixel, real center_across, real center_down) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= side * side) return;
    int x = i % side, y = i / side;
    real across = plus(times(plus((real)x, first_across), pixel), center_across);
    real down = plus(times(plus((real)y, first_down), pixel), center_down);
    real re = 0, im = 0;
    unsigned char count = 0;
    for (int step = 0; step < iterations; step++) {
        real re_2 = times(re, re), im_2 = times(im, im);
        count += plus(re_2, im_2) <= 4;
        im = plus(times(times(2, re), im), down);
        re = plus(plus(re_2, -im_2), across);
    }
    canvas[(top + y) * width + left + x] = count;
}
"""
_REALS: dict[str, type[ctypes.c_float | ctypes.c_double]] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


class TileKernel:
    """The kernel on a card, with a canvas; its code stays on the card until `close`.

    Args:
        case: the card, the dtype, and the side of a tile.
        canvas: ``uint8`` on the card, shape (height, width).
        iterations: of each pixel.
        center: the place of the views' center in the plane, across and down.
    """

    def __init__(
        self, case: Case, canvas: torch.Tensor, iterations: int, center: tuple[float, float]
    ) -> None:
        major, minor = torch.cuda.get_device_capability(case.device)
        code = Nvrtc().compile(source_for(case.dtype_name), 10 * major + minor)
        self._module = DriverModule(case.device, code.image)
        real = _REALS[case.dtype_name]
        self._left, self._top = ctypes.c_int(), ctypes.c_int()
        self._first_across, self._first_down, self._pixel = real(), real(), real()
        self._canvas = canvas
        # The driver reads the values at each launch.
        self._launch = self._module.kernel(
            _NAME,
            -(-(case.size**2) // _THREADS),
            _THREADS,
            [ctypes.c_void_p(canvas.data_ptr()), ctypes.c_int(canvas.shape[1]),
             ctypes.c_int(case.size), self._left, self._top, ctypes.c_int(iterations),
             self._first_across, self._first_down, self._pixel, *map(real, center)],
        )  # fmt: skip

    def paint(self, left: int, top: int, first: tuple[float, float], pixel: float) -> None:
        """Paint a tile; the card may still be working when this returns.

        Args:
            left: its first column on the canvas.
            top: its first row.
            first: the distance of its first pixel from the center, in pixels, across and down.
            pixel: the distance of two pixels in the plane.
        """
        self._left.value, self._top.value = left, top
        self._first_across.value, self._first_down.value = first
        self._pixel.value = pixel
        self._launch()

    def close(self) -> None:
        """Unload the code from the card."""
        self._module.close()


def source_for(dtype: str) -> str:
    """Return the CUDA C for ``float32`` or ``float64``; it needs no headers."""
    return _TYPES[dtype] + _KERNEL


def snippet_for(case: Case, iterations: int, center: tuple[float, float], widest: float) -> str:
    """Return a runnable script that compiles the kernel, paints the widest view and times that."""
    compiling = COMPILING.format(
        source=source_for(case.dtype_name), device=case.address, dtype=case.dtype_name, name=_NAME
    )
    return compiling + _PAINTING.format(
        tile=case.size,
        real="c_float" if case.dtype_name == "float32" else "c_double",
        iterations=iterations,
        across=center[0],
        down=center[1],
        widest=widest,
        threads=_THREADS,
    )


_PAINTING = """\
wide, high, tile, iterations, real = 512, 288, {tile}, {iterations}, ctypes.{real}
width, height = -(-wide // tile) * tile, -(-high // tile) * tile
canvas = torch.zeros(height, width, dtype=torch.uint8, device=device)
stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
grid, block = (-(-tile * tile // {threads}), 1, 1), ({threads}, 1, 1)


def paint(column, row):
    values = [ctypes.c_void_p(canvas.data_ptr()), *map(ctypes.c_int, (width, tile, column, row)),
              ctypes.c_int(iterations), real(column - wide / 2 + 0.5), real(row - high / 2 + 0.5),
              real({widest} / wide), real({across}), real({down})]
    addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    assert driver.cuLaunchKernel(function, *grid, *block, 0, stream, addresses, None) == 0


paint(0, 0)  # the first tile is slower
torch.cuda.synchronize()
start, tiles = time.perf_counter(), 0
for column in range(0, wide, tile):
    for row in range(0, high, tile):
        paint(column, row)
        tiles += 1
torch.cuda.synchronize()
print(f"{{tiles / (time.perf_counter() - start):.1f}} tiles a second")
"""
