"""The kernel that paints tiles: its text, compiled for the CPU, paints PyTorch's counts."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.messages.run_messages import RunFailed
from gpu_studio.engine import nvrtc
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.paint import (
    CENTER,
    HEIGHT,
    ITERATIONS,
    VIEWS,
    WIDTH,
    PaintDrawing,
    pixel_of,
)
from gpu_studio.engine.workloads.paint_kernel import source_for
from gpu_studio.engine.workloads.registry import PICTURES
from tests.engine.answers import ask, run_request

if TYPE_CHECKING:
    from pathlib import Path

# What CUDA C has and C++ has not; a "launch" is a loop over the threads.
_ON_THE_CPU = """
#define __global__
#define __device__ static
static struct {{ int x; }} blockIdx, blockDim = {{1}}, threadIdx;
static float __fadd_rn(float a, float b) {{ return a + b; }}
static float __fmul_rn(float a, float b) {{ return a * b; }}
static double __dadd_rn(double a, double b) {{ return a + b; }}
static double __dmul_rn(double a, double b) {{ return a * b; }}
{source}
extern "C" void launch(unsigned char* canvas, int width, int side, int left, int top,
                       int iterations, real first_across, real first_down, real pixel,
                       real across, real down, int threads) {{
    for (blockIdx.x = 0; blockIdx.x < threads; blockIdx.x++)
        paint_tile(canvas, width, side, left, top, iterations, first_across, first_down, pixel,
                   across, down);
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_paints_the_counts_of_pytorch(dtype: str, tmp_path: Path):
    """A tile in the first and the last view, bit by bit; its neighbors stay as they are."""
    text, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
    text.write_text(_ON_THE_CPU.format(source=source_for(dtype)))
    command = ["g++", "-w", "-O1", "-ffp-contract=off", "-shared", "-fPIC", text, "-o", library]
    subprocess.run(command, check=True)
    launch = ctypes.CDLL(str(library)).launch
    real = ctypes.c_float if dtype == "float32" else ctypes.c_double
    side, column, row = 64, 3, 2
    drawing = PaintDrawing(Case(device=torch.device("cpu"), size=side, dtype=getattr(torch, dtype)))
    for view in (0, VIEWS - 1):
        canvas = np.full((HEIGHT, WIDTH), 200, np.uint8)
        left, top = column * side, row * side
        launch(
            canvas.ctypes.data_as(ctypes.c_void_p), WIDTH, side, left, top, ITERATIONS,
            real(left - WIDTH / 2 + 0.5), real(top - HEIGHT / 2 + 0.5), real(pixel_of(view)),
            *map(real, CENTER), side * side + 10,  # more threads than pixels, as in a last block
        )  # fmt: skip
        tile = column * -(-HEIGHT // side) + row
        drawing.paint(view, tile)
        inside = canvas[top : top + side, left : left + side]
        assert len(np.unique(inside)) > 3
        assert (inside == drawing.tile(tile)).all()
        canvas[top : top + side, left : left + side] = 200
        assert (canvas == 200).all(), "another tile was painted"


def painting(**changes: Any) -> Any:
    parameters: dict[str, Any] = {
        "workload": "paint",
        "size": 64,
        "race": RaceParameters(own_kernel=True),
        "budget_s": 0.1,
    }
    return run_request(**{**parameters, **changes})


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.description.name)
def test_the_cpu_is_refused_in_a_sentence(picture: Any):
    failed = ask(painting(workload=picture.description.name))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.failure.kind is FailureKind.BAD_REQUEST
    assert "custom CUDA kernel" in failed.failure.message


def test_only_paint_offers_it():
    offers = {one.description.name for one in PICTURES if one.description.race.own_kernel}
    assert offers == {"paint"}


def test_without_a_compiler_it_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(nvrtc.ctypes, "CDLL", _no_library)
    case = Case(
        device=torch.device("cuda", 0), size=64, race=RaceParameters(own_kernel=True)
    )  # no card is asked
    (paint,) = (one for one in PICTURES if one.description.name == "paint")
    with pytest.raises(nvrtc.StudioError, match="compiler"):
        paint.check(case)


def _no_library(name: str) -> None:
    message = f"no {name}"
    raise OSError(message)
