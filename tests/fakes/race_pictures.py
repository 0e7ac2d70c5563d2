"""The frames that a race really shows, drawn on the CPU for the pictures of the window."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gpu_studio.core.race.pictures import GROW, PAINT, PICTURES, SWARM, lake, wide_height
from tests.fakes.race_answers import FRAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SIDE = 256
_BLURRED = 24.0  # pixels: the first frame shows clouds of color


@cache
def drawn_pictures(picture: str) -> Sequence[NDArray[np.uint8]]:
    """Return the frames of a picture, each of shape (height, width, 3)."""
    if picture == PICTURES[0].name:
        return [_blurred(_BLURRED * (1 - n / (FRAMES - 1)) ** 2) for n in range(FRAMES)]
    if picture == SWARM.name:
        return _carried()
    return _painted() if picture == PAINT.name else _grown()


def _blurred(radius: float) -> NDArray[np.uint8]:
    """Return the picture of this program, blurred by a Gaussian of this radius in pixels."""
    down, across = np.fft.fftfreq(wide_height(_SIDE)), np.fft.fftfreq(_SIDE)
    falls = np.exp(-2 * (np.pi * radius) ** 2 * (down[:, None] ** 2 + across**2))
    spectrum = np.fft.fft2(lake().pixels[::2, ::2].astype(float), axes=(0, 1))
    blurred = np.fft.ifft2(spectrum * falls[:, :, None], axes=(0, 1)).real
    return blurred.round().clip(0, 255).astype(np.uint8)


def _painted() -> Sequence[NDArray[np.uint8]]:
    import torch

    from gpu_studio.engine.workloads.case import make_case
    from gpu_studio.engine.workloads.paint import PaintDrawing

    drawing = PaintDrawing(make_case(PAINT, torch.device("cpu"), 128))
    return _shown_by(drawing, 24 * drawing.tiles_per_view)


def _grown() -> Sequence[NDArray[np.uint8]]:
    import torch

    from gpu_studio.core.messages.race_messages import RaceParameters
    from gpu_studio.engine.workloads.case import make_case
    from gpu_studio.engine.workloads.grow import GrowDrawing

    case = make_case(GROW, torch.device("cpu"), _SIDE // 2, race=RaceParameters())
    return _shown_by(GrowDrawing(case), 2000)


def _carried() -> Sequence[NDArray[np.uint8]]:
    import torch

    from gpu_studio.engine.workloads.case import make_case
    from gpu_studio.engine.workloads.swarm import SwarmDrawing

    return _shown_by(SwarmDrawing(make_case(SWARM, torch.device("cpu"), 10_000)), 160)


def _shown_by(drawing: object, steps: int) -> Sequence[NDArray[np.uint8]]:
    """Return equally distant frames of a drawing's whole way."""
    shown, done = [], 0
    for number in range(FRAMES):
        while done < number * steps // (FRAMES - 1):
            drawing()
            done += 1
        shown.append(drawing.pixels())
    return shown
