import contextlib
import time
import timeit
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from gpu_studio.core.messages.race_messages import RaceParameters
from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE
from gpu_studio.engine.workloads import learn
from gpu_studio.engine.workloads.case import Case
from gpu_studio.engine.workloads.drawing import Picture
from gpu_studio.engine.workloads.grow import GrowDrawing
from gpu_studio.engine.workloads.learn import (
    LearnDrawing,
    photo_of,
    reference_curve,
    sharpness_curve,
    shrunk,
)
from gpu_studio.engine.workloads.paint import PaintDrawing
from gpu_studio.engine.workloads.registry import PICTURES
from gpu_studio.engine.workloads.swarm import SwarmDrawing

CPU = torch.device("cpu")
every = pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.description.name)


def case_of(picture: Picture, dtype: str = "float32", **changes: Any) -> Case:
    size = max(min(picture.description.sizes), 32)
    plain = Case(device=CPU, size=size, dtype=getattr(torch, dtype), race=RaceParameters())
    return msgspec.structs.replace(plain, **changes)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@every
def test_it_shows_a_picture_that_fits_a_frame(picture: Picture):
    for size in (min(picture.description.sizes), max(picture.description.sizes)):
        if picture.description.name == "learn" and size > 64:
            continue  # seconds a step; its frames are as large as its size, which is checked above
        drawing = picture.prepare(case_of(picture, size=size))
        pixels = drawing.pixels()
        assert pixels.dtype == np.uint8
        assert pixels.shape[2] == 3
        assert max(pixels.shape) <= LARGEST_FRAME_SIDE
        drawing.close()


@every
def test_starting_again_draws_the_same(picture: Picture):
    with contextlib.closing(picture.prepare(case_of(picture))) as drawing:
        ways = []
        for _ in range(2):
            drawing.restart()
            way = [(drawing.measure(), drawing.pixels().tobytes())]
            for _ in range(3):
                drawing()
                way.append((drawing.measure(), drawing.pixels().tobytes()))
            ways.append(way)
    assert ways[0] == ways[1]
    assert ways[0][0] != ways[0][-1]


@every
def test_it_is_correct_in_every_dtype(picture: Picture):
    for dtype in picture.description.dtypes:
        check = picture.verify(case_of(picture, dtype))
        assert check.verified, (dtype, check.sentence)


@every
def test_wrong_steps_are_noticed(picture: Picture, monkeypatch: pytest.MonkeyPatch):
    """A card whose kernels compute nothing leaves the picture as it was."""
    drawings = {
        "learn": LearnDrawing, "paint": PaintDrawing, "grow": GrowDrawing, "swarm": SwarmDrawing,
    }  # fmt: skip
    drawing = drawings[picture.description.name]
    step = "paint" if drawing is PaintDrawing else "__call__"
    created = getattr(drawing, step)

    def nothing_in_float32(one: Any, *arguments: Any) -> object:
        is_reference = getattr(one, "_weights_dtype", one._case.dtype) == torch.float64
        return created(one, *arguments) if is_reference else None

    monkeypatch.setattr(drawing, step, nothing_in_float32)
    assert picture.verify(case_of(picture)).verified is False


@every
def test_its_snippet_runs(picture: Picture, capsys: pytest.CaptureFixture[str]):
    size = 64 if picture.description.name != "learn" else 8
    code = picture.snippet(case_of(picture, size=size))
    exec(compile(_shortened(code), "<snippet>", "exec"), {})
    assert any(character.isdigit() for character in capsys.readouterr().out)


def _shortened(code: str) -> str:
    return code.replace("range(2000)", "range(3)").replace("/ 2000", "/ 3").replace("500", "5")


# ── learn ────────────────────────────────────────────────────────────────────────────────────────

LEARNED = 24


@pytest.mark.parametrize(
    ("name", "value"), [("LEARNING_RATE", 1.01e-4), ("FREQUENCY", 29.9)], ids=str
)
def test_a_slightly_different_network_is_noticed(
    name: str, value: float, monkeypatch: pytest.MonkeyPatch
):
    """The tolerance is narrow: one percent of the learning rate lies outside."""
    photo = photo_of(Case(device=CPU, size=LEARNED))
    case = Case(device=CPU, size=LEARNED, race=RaceParameters())
    expected = reference_curve(case, photo, 8)
    monkeypatch.setattr(learn, name, value)
    found = sharpness_curve(LearnDrawing(case, photo), 8)
    eps = float(torch.finfo(torch.float32).eps)
    assert learn.judged(found, expected, eps).verified is False


@pytest.mark.parametrize(
    ("shape", "side", "expected"),
    [((1, 1), 16, (16, 16)), ((1, 10000), 64, (1, 64)), ((512, 256), 64, (64, 32))],
    ids=str,
)
def test_a_photo_of_any_shape_keeps_it(shape, side, expected):
    photo = np.full((*shape, 3), 77, np.uint8)
    small = shrunk(photo, side)
    assert small.shape == (*expected, 3)
    assert (small == 77).all()


# ── paint ────────────────────────────────────────────────────────────────────────────────────────


def test_tiles_that_do_not_divide_the_picture_fill_it():
    drawing = PaintDrawing(Case(device=CPU, size=200))
    for _ in range(drawing.tiles_per_view):
        drawing()
    assert drawing.pixels().shape == (288, 512, 3)
    assert (drawing._canvas.numpy()[:288, :512] > 0).all()
    assert drawing.measure() == 1.0


# ── grow ─────────────────────────────────────────────────────────────────────────────────────────


@every
def test_every_size_is_drawn_in_a_moment(picture: Picture):
    """A glow whose cost grew with its reach took 9 s for the fewest bodies."""
    for size in sorted({max(picture.size_range[0], 64), *picture.description.sizes}):
        with contextlib.closing(picture.prepare(case_of(picture, size=size))) as drawing:
            drawing.pixels()
            took_s = min(timeit.repeat(drawing.pixels, number=1, repeat=5, timer=time.thread_time))
        assert took_s < 0.05, f"{size}: {took_s:.3f} s"


# ── swarm ────────────────────────────────────────────────────────────────────────────────────────


def test_whirls_keep_the_bodies_around_them():
    """A slice more or less of the bodies changes no body, and none is lost or thrown away."""
    case = Case(device=CPU, size=3000, race=RaceParameters())
    whole, sliced = SwarmDrawing(case), SwarmDrawing(case)
    sliced._at_once = 700
    for _ in range(20):
        whole()
        sliced()
    assert torch.allclose(whole.x, sliced.x)
    assert torch.allclose(whole.y, sliced.y)
    assert float(whole.y.abs().max()) < 1
    assert ((whole.x >= 0) & (whole.x < 1)).all()
