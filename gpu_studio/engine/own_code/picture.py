"""A user's code in a race: a step is one run of it, and an image among its results is drawn."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.packed_frame import CHANNELS, LARGEST_FRAME_SIDE
from gpu_studio.core.race.pictures import raced_code
from gpu_studio.engine.own_code.workload import OwnCall, OwnWorkload, seed
from gpu_studio.engine.workloads.drawing import TensorDrawing

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from gpu_studio.core.messages.run_messages import OwnCode
    from gpu_studio.engine.workloads.case import Case

_LEAST_SIDE = 8  # less is a small table
_MOST_OBLONG = 8  # a longer one is a column of numbers
_NEARLY = 1e-3  # what rounding adds to a brightness of 1


class OwnPicture(OwnWorkload):
    """A user's code as what a race draws; see `OwnWorkload`."""

    def __init__(self, code: OwnCode) -> None:
        super().__init__(code)
        self.description = raced_code(self.description)

    def prepare(self, case: Case) -> OwnDrawing:
        return OwnDrawing(self, case)


class OwnDrawing(OwnCall, TensorDrawing):
    """A user's code on its way; it keeps the result of its last run."""

    def __init__(self, workload: OwnPicture, case: Case) -> None:
        super().__init__(workload, case)
        self.restart()

    def restart(self) -> None:
        seed()
        self._steps = 0
        self._result: object = None

    def __call__(self) -> object:
        self._result = self._call()
        self._steps += 1
        return self._result

    @property
    def function(self) -> Callable[[], object]:
        return self._step

    def _step(self) -> object:
        self._result = self._call.plain()
        self._steps += 1
        return self._result

    def measure(self) -> float:
        return float(self._steps)

    def pixels(self) -> NDArray[np.uint8] | None:
        """Return the last image in the result of the last run; None without one."""
        images = map(_pixels, reversed(self._call.numbers(self._result)))
        return next((image for image in images if image is not None), None)

    def parts_s(self) -> dict[str, float]:
        return {}

    def _proof(self) -> torch.Tensor:
        return torch.zeros(1, device=self._case.device)


def _pixels(numbers: torch.Tensor) -> NDArray[np.uint8] | None:
    """Return some numbers as a picture, shape (height, width, 3); None if they are none.

    They are gray values or colors, as whole numbers up to 255 or as others up to 1. A large
    picture leaves rows and columns out.
    """
    shape = numbers.shape
    if shape[2:] not in ((), (CHANNELS,)) or len(shape) < 2:
        return None
    low, high = sorted(shape[:2])
    if low < _LEAST_SIDE or high > _MOST_OBLONG * low:
        return None
    stride = -(-high // LARGEST_FRAME_SIDE)
    shown = numbers[::stride, ::stride].cpu()
    if shown.is_floating_point():
        shown = shown.float()
        if not bool(((shown >= -_NEARLY) & (shown <= 1 + _NEARLY)).all()):
            return None
        shown = (shown.clamp(0, 1) * 255).round().to(torch.uint8)
    elif shown.dtype != torch.uint8:
        return None
    if shown.dim() == 2:
        shown = shown[..., None].expand(*shown.shape, CHANNELS)
    return shown.contiguous().numpy()


@lru_cache(maxsize=2)
def own_picture(code: OwnCode) -> OwnPicture:
    """Return a code as what a race draws; raises `StudioError` if it cannot be run."""
    return OwnPicture(code)
