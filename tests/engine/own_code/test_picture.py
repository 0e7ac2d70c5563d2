"""A user's code in a race: an image that it makes is drawn, and without one it still races."""

import pytest

from gpu_studio.core.benchmark.own_code import own_code
from gpu_studio.core.messages.race_messages import (
    FrameReady,
    FramesOpened,
    RaceParameters,
    Showing,
)
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.packed_frame import PackedFrame
from tests.engine.answers import only
from tests.engine.own_code.codes import engine, run_of

RAMP = "x = torch.linspace(0, 1, 20).repeat(10, 1)"
CASES = {
    "gray values": (f"{RAMP}\n    return x", (20, 10)),
    "colors": (f"{RAMP}\n    return torch.stack((x, x, x), -1)", (20, 10)),
    "whole numbers in a list": (f"{RAMP}\n    return 7, (x * 255).to(torch.uint8)", (20, 10)),
    "NumPy's": (f"{RAMP}\n    return x.numpy()", (20, 10)),
    "a large one": ("return torch.zeros(1100, 600)", (200, 367)),
    "numbers that are no brightness": (f"{RAMP}\n    return x * 2", None),
    "a table": ("return torch.rand(4, 100)", None),
    "nothing": ("torch.rand(9).exp()", None),
}


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    with engine(tmp_path_factory.mktemp("log") / "log") as started:
        yield started


def race_of(child, text):
    request = run_of(own_code(text), race=RaceParameters(), showing=Showing(), calls=5)
    events = child.ask(request)
    assert isinstance(events[-1], RunFinished), events[-1]
    assert events[-1].outcome.reached
    return only(FramesOpened, events), only(FrameReady, events)


@pytest.mark.parametrize("title", CASES)
def test_an_image_is_drawn(child, title):
    lines, size = CASES[title]
    opened, frames = race_of(child, f"import torch\ndef work(device):\n    {lines}")
    assert [(one.width, one.height) for one in opened] == ([size] if size else [])
    assert [frames[0].picture, frames[0].steps, frames[-1].steps] == [None, 0, 5]
    assert (frames[-1].picture is not None) is (size is not None)


def test_brightness_is_that_of_the_numbers(child):
    text = f"import torch\ndef work(device):\n    {RAMP}\n    return x"
    (opened,), frames = race_of(child, text)
    pixels = PackedFrame(frames[-1].picture, opened.width, opened.height).pixels
    assert pixels[3, [0, -1]].tolist() == [[0] * 3, [255] * 3]


def test_lines_without_a_function_show_their_image(child):
    opened, _ = race_of(child, f"import torch\n{RAMP}\nimage = torch.stack((x, x, x), -1)")
    assert opened
