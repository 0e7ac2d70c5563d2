"""The base class of a picture that a race draws: implement it to add a new one.

A picture is a workload whose call changes something step by step, and that can show it. Its
description has the finish line (`RaceTraits`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from gpu_studio.core.device_name import CPU
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.workloads.call import Drawing
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.parts import card_parts_s
from gpu_studio.engine.workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


_Drawing = TypeVar("_Drawing", bound="TensorDrawing")


class Picture(Workload):
    """A workload that draws; its calls are drawings. ``size_range`` has the sizes that it takes."""

    size_range: tuple[int, int]

    def check(self, case: Case) -> None:
        least, most = self.size_range
        if not least <= case.size <= most:
            raise StudioError(
                FailureKind.TOO_LARGE if case.size > most else FailureKind.BAD_REQUEST,
                f"{self.description.name} takes sizes from {least} to {most}, not {case.size}.",
            )

    @abstractmethod
    def prepare(self, case: Case) -> TensorDrawing:
        """Make everything that the steps need."""


class TensorDrawing(Drawing):
    """A picture that PyTorch draws.

    Args:
        case: the device, the size, and the race's own parameters.
    """

    def __init__(self, case: Case) -> None:
        self._case = case

    def result(self) -> torch.Tensor:
        """Do a step and return a tensor on the device that depends on it, of any size."""
        self()
        return self._proof()

    @abstractmethod
    def _proof(self) -> torch.Tensor:
        """Return a small tensor on the device that depends on the last step."""

    def parts_s(self) -> dict[str, float]:
        """Return the times of launching and computing a step on a card; empty on the CPU."""
        if not self._case.is_on_card:
            return {}
        parts = card_parts_s(self._case.device, (), self.result)
        # Nothing is copied in a step.
        return {name: part_s for name, part_s in parts.items() if not name.startswith("copy")}


def steps_of_both(
    kind: Callable[[Case], _Drawing], case: Case, steps: int
) -> tuple[_Drawing, _Drawing]:
    """Return a drawing after some steps, and the same in float64 on the CPU."""
    cpu = Case(device=torch.device(CPU), size=case.size, dtype=torch.float64, race=case.race)
    both = kind(case), kind(cpu)
    for drawing in both:
        for _ in range(steps):
            drawing()
    return both


def gradient(
    stops: Sequence[tuple[int, int, int]], shares: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Return the colors at some shares of the way through evenly spaced stops.

    Args:
        stops: red, green and blue, each from 0 to 255.
        shares: from 0 (the first stop) to 1 (the last one), shape (n,).

    Returns:
        The colors, shape (n, 3).
    """
    place = shares * (len(stops) - 1)
    channels = np.array(stops).T
    colors = [np.interp(place, np.arange(len(stops)), channel) for channel in channels]
    return np.stack(colors, axis=1).astype(np.uint8)
