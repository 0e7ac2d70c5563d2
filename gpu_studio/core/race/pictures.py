"""The pictures that a race can draw: known before the engine has started.

Each is a workload of the engine (`engine.workloads`), which implements it.
"""

from __future__ import annotations

from gpu_studio.core.messages.race_messages import RaceTraits
from gpu_studio.core.messages.run_messages import WorkloadDescription

DEFAULT_BUDGET_S = 15.0
"""The longest time of a contestant: two of them, with their preparation, take under a minute."""

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
        finish=30.0,
        unit="dB",
        measure_title="sharpness",
        step_title="steps",
        deed="learned the picture",
        default_size=96,
    ),
)
PAINT = WorkloadDescription(
    name="paint",
    title="Paint one picture",
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
        finish=24.0,
        unit="pictures",
        measure_title="painted",
        step_title="tiles",
        deed="painted the pictures",
        default_size=128,
        own_kernel=True,
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
    size_title="Side of the picture",
    size_text="{size} × {size}",
    refuses=_REFUSES,
    race=RaceTraits(
        limit="memory bandwidth",
        finish=2000.0,
        unit="steps",
        measure_title="grown",
        step_title="steps",
        deed="grew the pattern",
        default_size=256,
    ),
)
PICTURES = (LEARN, PAINT, GROW)
