"""The built-in models that can be moved between devices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.placement_messages import ModelDescription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SEED = 20250130


class BuiltInModel:
    """A model and the input for which its outputs are compared.

    Args:
        description: the model's title and sentence.
        code: the expression that builds the model, for the snippet.
        build: builds the model.
        input_shape: the shape of the input.
        longest_sum: the most terms in the sum of a single number.
    """

    def __init__(
        self,
        description: ModelDescription,
        code: str,
        build: Callable[[], nn.Module],
        input_shape: tuple[int, ...],
        longest_sum: int,
    ) -> None:
        self.description = description
        self.code = code
        self._build = build
        self.input_shape = input_shape
        self._longest_sum = longest_sum

    def build(self) -> tuple[nn.Module, torch.Tensor]:
        """Return the model in evaluation mode and its input on the CPU, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            return self._build().eval(), torch.randn(self.input_shape)

    def tolerance(self, output: torch.Tensor, dtypes: Iterable[torch.dtype]) -> float:
        """Return the allowed difference between two devices, or between two dtypes on one device.

        The rounding errors of a sum of n terms grow on average as √n · eps (Higham and Mary, A new
        approach to probabilistic rounding error analysis, 2019); the factor 16 covers the layers
        and the tail. Products in half precision are summed in float32, so only the rounding of the
        operands remains, which does not grow with the sum.

        Args:
            output: the output, in any dtype.
            dtypes: the dtypes in which the model computed, before and after.
        """
        coarsest = max(torch.finfo(dtype).eps for dtype in dtypes)
        summed = math.sqrt(self._longest_sum) * torch.finfo(torch.float32).eps
        return 16 * max(coarsest, summed) * float(output.abs().max())


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def _convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


MODELS = (
    BuiltInModel(
        ModelDescription(
            name="linear_10",
            title="Linear(10, 10)",
            sentence="The smallest layer to test a device with: 110 parameters.",
        ),
        "torch.nn.Linear(10, 10)",
        lambda: nn.Linear(10, 10),
        (8, 10),
        11,
    ),
    BuiltInModel(
        ModelDescription(
            name="linear_1000",
            title="Linear(1000, 500)",
            sentence="One layer of half a million parameters with a 1000 × 1000 input.",
        ),
        "torch.nn.Linear(1000, 500)",
        lambda: nn.Linear(1000, 500),
        (1000, 1000),
        1001,
    ),
    BuiltInModel(
        ModelDescription(
            name="convnet",
            title="Small conv net",
            sentence=(
                "Classifies 32 × 32 images. Its batch norms also have buffers: numbers that are "
                "not trained but have to move as well."
            ),
        ),
        """torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.BatchNorm2d(16),
    torch.nn.ReLU(),
    torch.nn.MaxPool2d(2),
    torch.nn.Conv2d(16, 32, 3, padding=1),
    torch.nn.BatchNorm2d(32),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 10),
)""",
        _convnet,
        (8, 3, 32, 32),
        145,
    ),
    BuiltInModel(
        ModelDescription(
            name="mlp",
            title="Multi-layer perceptron",
            sentence="Three layers for handwritten digits: 784 inputs, 10 outputs.",
        ),
        """torch.nn.Sequential(
    torch.nn.Linear(784, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 128),
    torch.nn.ReLU(),
    torch.nn.Linear(128, 10),
)""",
        _mlp,
        (32, 784),
        785,
    ),
)


def find_model(name: str) -> BuiltInModel:
    """Return a built-in model; raises `StudioError` with the known names."""
    for model in MODELS:
        if model.description.name == name:
            return model
    names = ", ".join(model.description.name for model in MODELS)
    raise StudioError(FailureKind.BAD_REQUEST, f"“{name[:20]}” is not a model: choose {names}.")
