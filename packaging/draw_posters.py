"""Draw resources/posters: what each picture of a race will become, as seen before it is run.

    .venv/bin/python packaging/draw_posters.py

The engine's own drawings make them, on the CPU. They are kept in the repository because the window
has no PyTorch, and a swarm takes seconds. The picture of "Learn" is a file itself: learn.zrgb.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from PySide6.QtGui import QGuiApplication

from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.grow import GrowDrawing
from gpu_studio.engine.workloads.paint import PaintDrawing
from gpu_studio.engine.workloads.swarm import SwarmDrawing
from gpu_studio.ui.race.race_lane import image_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "posters"
_QUALITY = 75
# The drawing, the size that a race begins with, and the steps until a moment easy to recognize.
POSTERS = {
    "paint": (PaintDrawing, 64, 40),  # the widest view
    "grow": (GrowDrawing, 512, 4000),
    "swarm": (SwarmDrawing, 100_000, 70),
}


def drawn(name: str, size: int | None = None) -> NDArray[np.uint8]:
    """Return a picture at the moment of its poster, shape (height, width, 3).

    Args:
        name: the picture's.
        size: another one than the poster's.
    """
    kind, usual, steps = POSTERS[name]
    drawing = kind(Case(device=torch.device("cpu"), size=size or usual, dtype=torch.float32))
    for _ in range(steps):
        drawing()
    return drawing.pixels()


def main() -> None:
    """Write all posters."""
    application = QGuiApplication(["draw_posters", "-platform", "offscreen"])
    for name in POSTERS:
        image_of(PackedFrame.of(drawn(name))).save(str(_FOLDER / f"{name}.jpg"), "JPEG", _QUALITY)
    application.quit()


if __name__ == "__main__":
    main()
