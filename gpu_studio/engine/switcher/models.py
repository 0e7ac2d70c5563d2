"""The built-in models that can be moved between devices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import nn

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import ModelDescription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SEED = 20250130


class BuiltInModel:
    """A model and the input its output is compared for.

    Args:
        description: what people read.
        code: the expression that builds it, as the snippet shows it.
        build: builds it.
        input_shape: the shape of its input.
        longest_sum: the most terms that one of its numbers is a sum of.
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
        """Return how far two devices, or one in two dtypes, may differ.

        Rounding errors of a sum of n terms grow as √n · eps in the mean (Higham and Mary, A new
        approach to probabilistic rounding error analysis, 2019); 16 covers the layers and the
        tail. Products in half precision are summed in float32: what remains of it are the roundings
        of the operands, which do not grow with the sum.

        Args:
            output: the output, in any dtype.
            dtypes: what the model computed in, before and after.
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
            sentence="The smallest layer to try a device with: 110 numbers.",
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
            sentence="One layer of half a million numbers with a 1000 × 1000 input.",
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
                "Looks at 32 × 32 pictures. Its batch norms also keep buffers: numbers that are "
                "not learned and have to move as well."
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
            sentence="Three layers as for handwritten digits: 784 inputs, 10 outputs.",
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
    """Return a built-in model; raises `StudioError` with the names there are."""
    for model in MODELS:
        if model.description.name == name:
            return model
    names = ", ".join(model.description.name for model in MODELS)
    raise StudioError(FailureKind.BAD_REQUEST, f"“{name[:20]}” is not a model: there are {names}.")
