"""The built-in models that can be moved between devices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.switcher.models import CONVNET, LINEAR_10, LINEAR_1000, MLP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import nn

    from gpu_studio.core.messages.placement_messages import ModelDescription

_SEED = 20250130


class BuiltInModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model and the input for which its outputs are compared.

    ``code`` is the expression that builds the model, here and in the snippet. ``longest_sum`` is
    the largest number of terms in the sum of a single number.
    """

    description: ModelDescription
    code: str
    input_shape: tuple[int, ...]
    longest_sum: int

    def build(self) -> tuple[nn.Module, torch.Tensor]:
        """Return the model in evaluation mode and its input on the CPU, the same every time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            model: nn.Module = eval(self.code, {"torch": torch})
            return model.eval(), torch.randn(self.input_shape)

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
        summed = math.sqrt(self.longest_sum) * torch.finfo(torch.float32).eps
        return 16 * max(coarsest, summed) * float(output.abs().max())


MODELS = (
    BuiltInModel(
        description=LINEAR_10,
        code="torch.nn.Linear(10, 10)",
        input_shape=(8, 10),
        longest_sum=11,
    ),
    BuiltInModel(
        description=LINEAR_1000,
        code="torch.nn.Linear(1000, 500)",
        input_shape=(1000, 1000),
        longest_sum=1001,
    ),
    BuiltInModel(
        description=CONVNET,
        code="""torch.nn.Sequential(
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
        input_shape=(8, 3, 32, 32),
        longest_sum=145,
    ),
    BuiltInModel(
        description=MLP,
        code="""torch.nn.Sequential(
    torch.nn.Linear(784, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 128),
    torch.nn.ReLU(),
    torch.nn.Linear(128, 10),
)""",
        input_shape=(32, 784),
        longest_sum=785,
    ),
)


def find_model(name: str) -> BuiltInModel:
    """Return a built-in model; raises `StudioError` with the known names."""
    for model in MODELS:
        if model.description.name == name:
            return model
    names = ", ".join(model.description.name for model in MODELS)
    raise StudioError(FailureKind.BAD_REQUEST, f"“{name[:20]}” is not a model: choose {names}.")
