"""The pictures that a race can draw: known before the engine has started.

Each is a workload of the engine (`engine.workloads`), which implements it.
"""

from __future__ import annotations

from functools import cache

import msgspec

from gpu_studio.core.messages.race_messages import RaceTraits
from gpu_studio.core.messages.run_messages import WorkloadDescription
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.resources import resource_path

DEFAULT_BUDGET_S = 6.0
"""The time of the fastest contestant, about: two of them, with all else, take half a minute."""
WIDE = (16, 9)
"""The shape of every built-in picture, width to height."""

_STEADY = "A race starts with everything in place, so this mode makes no sense for it."
_REFUSES = {"cold": _STEADY, "transfers": _STEADY, "naive": _STEADY}

LEARN = WorkloadDescription(
    name="learn",
    title="Learn a picture",
    sentence=(
        "A small neural network learns a picture: from the place of a pixel, it predicts the "
        "color. The slower side stays blurred. Arithmetic decides."
    ),
    dtypes=("float32", "float16", "bfloat16"),
    sizes=(16, 32, 64, 96, 128, 256, 512),
    throughput_unit="FLOP/s",
    source="Sitzmann et al., Implicit Neural Representations with Periodic Activation Functions",
    size_title="Longer side of the picture",
    size_text="{size} px",
    refuses=_REFUSES,
    race=RaceTraits(
        limit="arithmetic",
        step_title="steps",
        measure_title="sharpness",
        unit="dB",
        default_size=128,
    ),
)
PAINT = WorkloadDescription(
    name="paint",
    title="Paint a picture",
    sentence=(
        "The Mandelbrot set, tile by tile, in ever closer views. Each tile is a few hundred small "
        "operations: with small tiles, starting them costs more than computing them."
    ),
    dtypes=("float32", "float64"),
    sizes=(16, 32, 64, 128, 256, 512),
    throughput_unit="FLOP/s",
    size_title="Side of a tile",
    size_text="tiles of {size} px",
    refuses=_REFUSES,
    race=RaceTraits(
        limit="launch cost",
        step_title="tiles",
        measure_title="painted",
        unit="pictures",
        default_size=64,
    ),
)
GROW = WorkloadDescription(
    name="grow",
    title="Grow a pattern",
    sentence=(
        "Two substances react and spread (Gray–Scott), and a pattern grows. Each step passes over "
        "the whole picture with little arithmetic: memory bandwidth decides."
    ),
    dtypes=("float32", "float16", "bfloat16"),
    sizes=(64, 128, 256, 512, 1024, 2048),
    throughput_unit="B/s",
    source="Pearson, Complex Patterns in a Simple System (1993)",
    size_title="Width of the picture",
    size_text="{size} px",
    refuses=_REFUSES,
    race=RaceTraits(
        limit="memory bandwidth",
        step_title="steps",
        default_size=512,
    ),
)
SWARM = WorkloadDescription(
    name="swarm",
    title="Swarm in two streams",
    sentence=(
        "A fluid flows to the left above and to the right below, and whirls grow where both meet. "
        "Every whirl moves every body: millions of pairs in each step, so the rate of the pictures "
        "shows the speed."
    ),
    dtypes=("float32",),
    sizes=(1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
    throughput_unit="FLOP/s",
    source="Krasny, Desingularization of Periodic Vortex Sheet Roll-up (1986)",
    size_title="Bodies",
    size_text="{size} bodies",
    refuses=_REFUSES,
    race=RaceTraits(
        limit="arithmetic and memory bandwidth",
        step_title="steps",
        default_size=100_000,
    ),
)
PICTURES = (LEARN, PAINT, GROW, SWARM)


def raced_code(workload: WorkloadDescription) -> WorkloadDescription:
    """Return the user's own code as what a race draws: its steps are the runs of it."""
    size = workload.sizes[len(workload.sizes) // 2]
    traits = RaceTraits(limit="", step_title="runs", default_size=size)
    return msgspec.structs.replace(workload, refuses=_REFUSES, race=traits)


@cache
def lake() -> PackedFrame:
    """Return the picture that a race learns if you give it none: a lake at dusk, 512 × 288.

    Raises:
        MissingResourceError: the program's file cannot be read.
    """
    return PackedFrame(resource_path("posters/learn.zrgb").read_bytes(), 512, 288)


def wide_height(width: int) -> int:
    """Return the height of a built-in picture."""
    across, down = WIDE
    return max(1, round(width * down / across))
