"""Paint the Mandelbrot set tile by tile: many small operations, so launching them counts.

Complex numbers are written out in real arithmetic, and every pixel has the same number of
iterations. The views become closer by the same factor each time, and go back again. float32 tells
neighboring pixels apart down to about 1e-7, so the closest view stays above that.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.core.race.pictures import PAINT
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.drawing import Picture, TensorDrawing, gradient

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH, HEIGHT = 512, 288
ITERATIONS = 64
VIEWS = 96
_OPERATIONS_PER_ITERATION = 9
# That PyTorch reads and writes for a pixel in an iteration, counted; a count has one byte.
_NUMBERS_MOVED, _COUNTS_MOVED = 22, 4
_TENSORS = 8
# The views close in on a spiral arm at the edge of the set.
CENTER = (-0.743643, 0.131825)
_WIDEST = 1.6
# 96 views: the last one is 0.09 wide, 1.7e-4 from pixel to pixel. Then they go back again.
_CLOSER = 0.97
# What is not painted yet is seen in coarse squares, each of so many pixels a side.
_COARSE = 16
# Near the edge of the set, the number of iterations depends on the last digit. Measured on the CPU:
# up to 0.05 % of the pixels differ between float32 and float64. A small tile has few pixels.
_SHARE_MAY_DIFFER, _PIXELS_MAY_DIFFER = 0.002, 4


class Paint(Picture):
    """The Mandelbrot set in tiles; see `workload.Workload`."""

    description = PAINT
    size_range = (4, WIDTH)
    small_up_to = WIDTH

    def work(self, case: Case) -> Work:
        iterations = float(ITERATIONS * case.size**2)
        operations = _OPERATIONS_PER_ITERATION * iterations
        return Work(
            operations=operations,
            bytes_moved=(_NUMBERS_MOVED * case.item_bytes + _COUNTS_MOVED) * iterations,
            throughput_work=operations,
            memory_bytes=_TENSORS * case.size**2 * case.item_bytes + WIDTH * HEIGHT,
            longest_kernel=1 / (_OPERATIONS_PER_ITERATION * ITERATIONS),
        )

    def prepare(self, case: Case) -> TensorDrawing:
        return PaintDrawing(case)

    def verify(self, case: Case) -> Verification:
        """Compare the tile in the middle of the first and the last view with NumPy in float64."""
        compared = (f"a tile of {case.size} × {case.size} in the first and the last view",)
        allowed = _PIXELS_MAY_DIFFER + round(_SHARE_MAY_DIFFER * case.size**2)
        drawing = PaintDrawing(case)
        middle = drawing.tiles_per_view // 2
        for view in (0, VIEWS - 1):
            drawing.paint(view, middle)
            found = drawing.tile(middle)
            different = int((found != reference_tile(case.size, view, middle)).sum())
            if different > allowed:
                finding = f"{different} pixels differ; rounding explains {allowed}"
                return Verification(False, finding, compared)
        return Verification(True, f"all but at most {allowed} pixels are exact", compared)

    def snippet(self, case: Case) -> str:
        return _SNIPPET.format(
            width=WIDTH,
            height=HEIGHT,
            tile=case.size,
            device=case.address,
            dtype=case.dtype_name,
            iterations=ITERATIONS,
            widest=_WIDEST,
            across=CENTER[0],
            down=CENTER[1],
            wait=wait_line(case.address),
        )


class PaintDrawing(TensorDrawing):
    """Views of the set, painted tile by tile: columns from the left, each from the top.

    Args:
        case: the device, the dtype and the side of a tile.
    """

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._per_column = _per_column(case.size)
        columns = -(-WIDTH // case.size)
        self.tiles_per_view = self._per_column * columns
        shape = self._per_column * case.size, columns * case.size
        self._canvas = torch.zeros(shape, dtype=torch.uint8, device=case.device)
        self._next = 0
        self.restart()

    def restart(self) -> None:
        self._canvas[:HEIGHT, :WIDTH] = torch.from_numpy(_coarse_picture()).to(self._canvas.device)
        self._next = 0

    def __call__(self) -> object:
        """Paint the next tile; after the closest view, the views go back to the widest one."""
        number, tile = divmod(self._next, self.tiles_per_view)
        self.paint(view_of(number), tile)
        self._next += 1
        return self._canvas

    def measure(self) -> float:
        return self._next / self.tiles_per_view

    def pixels(self) -> NDArray[np.uint8]:
        """Return the present view; tiles that are not painted yet show what was there."""
        shown: NDArray[np.uint8] = _PALETTE[self._canvas.cpu().numpy()[:HEIGHT, :WIDTH]]
        return shown

    def paint(self, view: int, tile: int) -> None:
        case, side = self._case, self._case.size
        column, row = divmod(tile, self._per_column)
        pixel = pixel_of(view)
        place = torch.arange(side, device=case.device, dtype=case.dtype)
        across = ((place + (column * side - WIDTH / 2 + 0.5)) * pixel + CENTER[0]).expand(
            side, side
        )
        down = ((place + (row * side - HEIGHT / 2 + 0.5)) * pixel + CENTER[1])[:, None].expand(
            side, side
        )
        real, imaginary = torch.zeros_like(across), torch.zeros_like(down)
        counts = torch.zeros(side, side, dtype=torch.uint8, device=case.device)
        for _ in range(ITERATIONS):
            real_2, imaginary_2 = real * real, imaginary * imaginary
            # Beyond the circle the numbers overflow, and a comparison with those is false.
            counts += real_2 + imaginary_2 <= 4
            imaginary = 2 * real * imaginary + down
            real = real_2 - imaginary_2 + across
        self._part(tile)[:] = counts

    def tile(self, tile: int) -> NDArray[np.uint8]:
        counts: NDArray[np.uint8] = self._part(tile).cpu().numpy()
        return counts

    def _part(self, tile: int) -> torch.Tensor:
        """Return the part of the canvas that a tile covers."""
        side = self._case.size
        column, row = divmod(tile, self._per_column)
        return self._canvas[row * side : (row + 1) * side, column * side : (column + 1) * side]

    def _proof(self) -> torch.Tensor:
        return self._canvas[:1]


def pixel_of(view: int) -> float:
    """Return the distance of two pixels of a view."""
    return _WIDEST * _CLOSER**view / WIDTH


def view_of(number: int) -> int:
    """Return the view that is painted after so many others: closer and back again."""
    around = number % (2 * VIEWS - 2)
    return min(around, 2 * VIEWS - 2 - around)


def reference_tile(side: int, view: int, tile: int) -> NDArray[np.uint8]:
    """Return the counts of a tile in float64, by NumPy."""
    column, row = divmod(tile, _per_column(side))
    place, pixel = np.arange(side), pixel_of(view)
    across = (place + (column * side - WIDTH / 2 + 0.5)) * pixel + CENTER[0]
    down = (place + (row * side - HEIGHT / 2 + 0.5)) * pixel + CENTER[1]
    return _counts(across, down)


@cache
def _coarse_picture() -> NDArray[np.uint8]:
    """Return the widest view in coarse squares, shape (height, width)."""
    pixel = pixel_of(0)
    across = (np.arange(_COARSE / 2, WIDTH, _COARSE) - WIDTH / 2) * pixel + CENTER[0]
    down = (np.arange(_COARSE / 2, HEIGHT, _COARSE) - HEIGHT / 2) * pixel + CENTER[1]
    return np.kron(_counts(across, down), np.ones((_COARSE, _COARSE), np.uint8))


def _per_column(side: int) -> int:
    return -(-HEIGHT // side)


def _counts(x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the counts at all pairs of coordinates, shape (y, x), in float64."""
    across, down = x[None, :], y[:, None]
    number = np.zeros((len(y), len(x)), np.complex128)
    counts = np.zeros((len(y), len(x)), np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(ITERATIONS):
            counts += number.real**2 + number.imag**2 <= 4
            number = number * number + (across + 1j * down)
    return counts


def _palette() -> NDArray[np.uint8]:
    """Return the color of each count, shape (256, 3): dark blue to white, the set plum."""
    stops = (8, 18, 48), (24, 96, 160), (86, 180, 233), (255, 240, 200), (255, 255, 255)
    palette = np.full((256, 3), (78, 26, 74), np.uint8)
    palette[:ITERATIONS] = gradient(stops, np.linspace(0, 1, ITERATIONS) ** 0.6)
    return palette


_PALETTE = _palette()

_SNIPPET = """\
import time
import torch

width, height, tile, device, dtype = {width}, {height}, {tile}, "{device}", torch.{dtype}
pixel = {widest} / width


def paint(column, row):
    place = torch.arange(tile, device=device, dtype=dtype)
    across = ((place + column - width / 2) * pixel + {across}).expand(tile, tile)
    down = ((place + row - height / 2) * pixel + {down})[:, None].expand(tile, tile)
    real, imaginary = torch.zeros_like(across), torch.zeros_like(down)
    counts = torch.zeros(tile, tile, dtype=torch.uint8, device=device)
    for _ in range({iterations}):
        real_2, imaginary_2 = real * real, imaginary * imaginary
        counts += real_2 + imaginary_2 <= 4
        imaginary = 2 * real * imaginary + down
        real = real_2 - imaginary_2 + across
    return counts


paint(0, 0)  # the first tile is slower
{wait}start, tiles = time.perf_counter(), 0
for column in range(0, width, tile):
    for row in range(0, height, tile):
        paint(column, row)
        tiles += 1
{wait}print(f"{{tiles / (time.perf_counter() - start):.1f}} tiles a second")
"""
