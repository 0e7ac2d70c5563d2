"""Learn a picture: a small network with sine activations predicts each pixel's color.

The network is that of Sitzmann et al. ("Implicit Neural Representations with Periodic Activation
Functions", 2020): sin(30 (W x + b)), with the initial weights of their section 3.2. Every step
learns from all pixels, so every contestant sees the same batch, and the loss of a step is the
error of the whole picture.
"""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE
from gpu_studio.core.race.pictures import LEARN, lake, wide_height
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.case import Case, Work, dtype_eps
from gpu_studio.engine.workloads.drawing import Picture, TensorDrawing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    import numpy as np
    from numpy.typing import NDArray

HIDDEN, LAYERS = 64, 3
FREQUENCY = 30.0
LEARNING_RATE = 1e-4
_SEED = 20251122
_CHANNELS = 3
_WIDTHS = (2, *[HIDDEN] * LAYERS, _CHANNELS)
_WEIGHTS = sum(inputs * outputs for inputs, outputs in itertools.pairwise(_WIDTHS))
# Per pixel and layer: the product, its multiple, the sine, and the gradients of two of them.
_TENSORS_PER_LAYER = 5
# That PyTorch reads and writes in a step, counted: for a pixel and a unit of a layer in all
# passes, and for a weight, mostly by Adam.
_NUMBERS_PER_UNIT, _NUMBERS_PER_WEIGHT = 18, 22
# The lowest error that a measurement of sharpness tells apart: 8-bit pictures have 51 dB.
_LEAST_ERROR = 1e-8
CHECKED_STEPS = 8
# A step in float64 takes several times as long; Adam's momentum shows in the second one.
_STEPS_OF_LARGE = 2


class Learn(Picture):
    """A network that learns a picture; see `workload.Workload`."""

    description = LEARN
    has_products = True
    size_range = (2, LARGEST_FRAME_SIDE)
    small_up_to = 32

    def work(self, case: Case) -> Work:
        pixels = _pixels_of(case)
        operations = 2.0 * pixels * (3 * _WEIGHTS - _WIDTHS[0] * HIDDEN)
        units = pixels * HIDDEN * LAYERS
        activations = units * _TENSORS_PER_LAYER
        moved = _NUMBERS_PER_UNIT * units + _NUMBERS_PER_WEIGHT * _WEIGHTS
        return Work(
            operations=operations,
            bytes_moved=float(4 * moved),
            throughput_work=operations,
            memory_bytes=(activations + 4 * pixels * _CHANNELS) * 4,
            longest_kernel=2.0 * pixels * HIDDEN * HIDDEN / operations,
        )

    def prepare(self, case: Case) -> TensorDrawing:
        return LearnDrawing(case, photo_of(case))

    def verify(self, case: Case) -> Verification:
        """Compare the sharpness over some steps with the same steps in float64 on the CPU."""
        photo = photo_of(case)
        steps = CHECKED_STEPS if case.size <= self.small_up_to else _STEPS_OF_LARGE
        found = sharpness_curve(LearnDrawing(case, photo), steps)
        expected = reference_curve(case, photo, steps)
        return judged(found, expected, dtype_eps(self.computes_in(case)))

    def snippet(self, case: Case) -> str:
        return _SNIPPET.format(
            size=case.size,
            device=case.address,
            kind=case.device.type,
            dtype=case.dtype_name,
            amp=case.dtype != torch.float32,
            hidden=HIDDEN,
            layers=LAYERS,
            frequency=FREQUENCY,
            rate=LEARNING_RATE,
            wait=wait_line(case.address),
        )


class LearnDrawing(TensorDrawing):
    """A network on its way to a picture.

    Args:
        case: the device, and the dtype of the products.
        photo: the picture, shape (height, width, 3).
        weights_dtype: the dtype of the weights; the reference uses float64.
    """

    def __init__(
        self,
        case: Case,
        photo: NDArray[np.uint8],
        weights_dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(case)
        self._height, self._width, _ = photo.shape
        self._weights_dtype = weights_dtype
        colors = torch.from_numpy(photo.reshape(-1, _CHANNELS).copy()).double() / 255
        self._colors = colors.to(weights_dtype).to(case.device)
        places = _places(self._height, self._width)
        self._places = places.to(weights_dtype).to(case.device)
        self.restart()

    def restart(self) -> None:
        self._parameters = [
            tensor.to(self._case.device).requires_grad_()
            for tensor in _initial(self._weights_dtype)
        ]
        self._optimizer = torch.optim.Adam(self._parameters, lr=LEARNING_RATE)
        is_scaled = self._case.dtype == torch.float16
        self._scaler = torch.amp.GradScaler(self._case.device.type, enabled=is_scaled)
        with torch.no_grad():
            self._predicted = self._predict()
            self._error = self._error_of(self._predicted)

    def __call__(self) -> object:
        self._optimizer.zero_grad()
        predicted = self._predict()
        error = self._error_of(predicted)
        self._scaler.scale(error).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._predicted, self._error = predicted.detach(), error.detach()
        return self._error

    def measure(self) -> float:
        """Return the sharpness (PSNR) of the last prediction in dB; 0 if it is not a number."""
        error = float(self._error)
        if not math.isfinite(error):
            return 0.0
        return max(0.0, -10 * math.log10(max(error, _LEAST_ERROR)))

    def pixels(self) -> NDArray[np.uint8]:
        levels = (self._predicted.float().nan_to_num(0.0).clamp(0, 1) * 255 + 0.5).to(torch.uint8)
        shown: NDArray[np.uint8] = levels.cpu().numpy()
        return shown.reshape(self._height, self._width, _CHANNELS)

    def _proof(self) -> torch.Tensor:
        return self._error

    def _predict(self) -> torch.Tensor:
        *hidden, weight, bias = self._parameters
        values = self._places
        for index in range(0, len(hidden), 2):
            # Two inputs cost next to nothing, and the frequency needs all their digits.
            with self._products_in(None if index == 0 else self._case.dtype):
                values = torch.nn.functional.linear(values, hidden[index], hidden[index + 1])
            values = torch.sin(FREQUENCY * values)
        with self._products_in(self._case.dtype):
            values = torch.nn.functional.linear(values, weight, bias)
        return values + 0.5

    def _error_of(self, predicted: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(predicted.to(self._weights_dtype), self._colors)

    def _products_in(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:
        if dtype is None or dtype in (torch.float32, torch.float64):
            return nullcontext()
        return torch.autocast(self._case.device.type, dtype=dtype)


def photo_of(case: Case) -> NDArray[np.uint8]:
    """Return the picture to learn at a case's size, shape (height, width, 3).

    Raises:
        StudioError: the photo is missing, damaged, or another one.
    """
    identity = case.race.photo if case.race is not None else ""
    photo = case.photo if identity or case.photo is not None else lake()
    pixels = photo.pixels if photo is not None else None
    if photo is None or pixels is None or (case.photo is not None and photo.identity != identity):
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "The photo of this race is not here: choose a picture to learn.",
        )
    return shrunk(pixels, case.size)


def shrunk(photo: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return a picture with this longer side; each pixel is the mean of those that it covers.

    A smaller picture is enlarged.
    """
    longer = max(photo.shape[:2])
    height, width = (max(1, round(length * side / longer)) for length in photo.shape[:2])
    planes = torch.from_numpy(photo.copy()).permute(2, 0, 1)[None].float()
    resized = torch.nn.functional.interpolate(
        planes, (height, width), mode="bilinear", antialias=True, align_corners=False
    )
    levels = (resized[0].permute(1, 2, 0) + 0.5).clamp(0, 255).to(torch.uint8)
    result: NDArray[np.uint8] = levels.contiguous().numpy()
    return result


def sharpness_curve(drawing: TensorDrawing, steps: int) -> list[float]:
    """Return the sharpness after each of the first steps, in dB."""
    curve = []
    for _ in range(steps):
        drawing()
        curve.append(drawing.measure())
    return curve


def reference_curve(case: Case, photo: NDArray[np.uint8], steps: int) -> list[float]:
    """Return the same curve in float64 on the CPU."""
    cpu = Case(device=torch.device("cpu"), size=case.size, dtype=torch.float64)
    return sharpness_curve(LearnDrawing(cpu, photo, torch.float64), steps)


def tolerance_db(eps: float, steps: int) -> float:
    """Return how far two curves over steps may differ, in dB.

    The loss is a mean over many pixels, in which the roundings of single numbers cancel: after one
    step it is off by about eps. Each step rounds anew, with random signs, so the error grows with
    the root of the steps. A relative error e of the loss is 10 / ln(10) * e dB. See `_MARGIN`.

    Args:
        eps: of the dtype of the products.
        steps: the length of the curves.
    """
    return _MARGIN * 10 / math.log(10) * eps * math.sqrt(steps)


# Another library adds in another order. Measured on the CPU at 16 to 64 px, from the first step to
# the last one: up to 0.5 in float32, 0.1 in float16 and bfloat16.
_MARGIN = 4.0


def judged(found: Sequence[float], expected: Sequence[float], eps: float) -> Verification:
    """Return whether a curve is correct, for products with precision ``eps``."""
    compared = (f"the sharpness over {len(found)} steps",)
    allowed = tolerance_db(eps, len(found))
    off = max(abs(one - other) for one, other in zip(found, expected, strict=True))
    if off <= allowed:
        return Verification(True, f"within {allowed:.2g} dB of float64", compared)
    return Verification(False, f"off by {off:.2g} dB; rounding explains {allowed:.2g} dB", compared)


def _pixels_of(case: Case) -> int:
    # A picture of yours may be as high as wide.
    is_own = case.race is not None and bool(case.race.photo)
    return case.size * (case.size if is_own else wide_height(case.size))


def _places(height: int, width: int) -> torch.Tensor:
    """Return the middle of each pixel, float64, shape (height * width, 2): the longer side is 2."""
    longer = max(height, width)
    down = (torch.arange(height, dtype=torch.float64) * 2 + 1 - height) / longer
    right = (torch.arange(width, dtype=torch.float64) * 2 + 1 - width) / longer
    return torch.cartesian_prod(down, right)


def _initial(dtype: torch.dtype) -> list[torch.Tensor]:
    """Return weights and biases of each layer in turn, on the CPU, the same every time."""
    generator = torch.Generator().manual_seed(_SEED)

    def uniform(shape: tuple[int, ...], bound: float) -> torch.Tensor:
        values = torch.rand(shape, generator=generator, dtype=torch.float32) * 2 - 1
        return (values * bound).to(dtype)

    tensors = []
    for index, (inputs, outputs) in enumerate(itertools.pairwise(_WIDTHS)):
        bound = 1 / inputs if index == 0 else math.sqrt(6 / inputs) / FREQUENCY
        tensors.append(uniform((outputs, inputs), bound))
        tensors.append(uniform((outputs,), 1 / math.sqrt(inputs)))
    return tensors


_SNIPPET = """\
import math
import time
import torch

size, device = {size}, "{device}"
torch.manual_seed(0)
axis = torch.linspace(-1, 1, size, device=device)
places = torch.cartesian_prod(axis, axis)
# Any picture with values from 0 to 1, shape (size * size, 3). This one is made of waves.
colors = 0.5 + 0.5 * torch.sin(places @ torch.tensor([[9.0, 4.0, 1.0], [2.0, 7.0, 5.0]]).to(device))


class Sine(torch.nn.Module):
    def forward(self, values):
        return torch.sin({frequency} * values)


layers = [torch.nn.Linear(2, {hidden}), Sine()]
for _ in range({layers} - 1):
    layers += [torch.nn.Linear({hidden}, {hidden}), Sine()]
network = torch.nn.Sequential(*layers, torch.nn.Linear({hidden}, 3)).to(device)
with torch.no_grad():
    for layer in network[2:]:
        if isinstance(layer, torch.nn.Linear):
            bound = math.sqrt(6 / {hidden}) / {frequency}
            layer.weight.uniform_(-bound, bound)
optimizer = torch.optim.Adam(network.parameters(), lr={rate})
scaler = torch.amp.GradScaler("{kind}", enabled="{dtype}" == "float16")

{wait}start = time.perf_counter()
for _ in range(500):
    optimizer.zero_grad()
    with torch.autocast("{kind}", dtype=torch.{dtype}, enabled={amp}):
        predicted = network(places)
    error = torch.nn.functional.mse_loss(predicted.float() + 0.5, colors)
    scaler.scale(error).backward()
    scaler.step(optimizer)
    scaler.update()
{wait}seconds = time.perf_counter() - start
sharpness = -10 * math.log10(error.item())
print(f"{{500 / seconds:.1f}} steps a second, {{sharpness:.1f}} dB")
"""
