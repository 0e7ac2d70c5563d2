"""The sample network of the workload `train_step`, its data, and one training step."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

INPUTS, HIDDEN, CLASSES = 784, 1024, 10
LEARNING_RATE = 0.1
MOMENTUM = 0.9
_LAYERS = ((INPUTS, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, CLASSES))
LONGEST_PRODUCT = HIDDEN * HIDDEN / (3 * sum(a * b for a, b in _LAYERS) - INPUTS * HIDDEN)
"""The share of a step's operations that its largest product has."""
CHECKED_STEPS = 2
"""Momentum shows only in the second step."""
_SEED = 20250130


class Training:
    """A network, its optimizer and its scaler on one device.

    Args:
        device: the device to train on.
        dtype: the dtype of the weights.
        autocast_dtype: the dtype of AMP's products; None means no AMP.
    """

    def __init__(
        self, device: torch.device, dtype: torch.dtype, autocast_dtype: torch.dtype | None
    ) -> None:
        self._device = device
        self._autocast_dtype = autocast_dtype
        self.network = build_network().to(device, dtype)
        self._model: nn.Module = self.network
        self._optimizer = torch.optim.SGD(
            self.network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM
        )
        # bfloat16 has the range of float32; only float16 needs scaled gradients.
        self._scaler = torch.amp.GradScaler(device.type, enabled=autocast_dtype is torch.float16)

    def share(self, wrap: Callable[[nn.Module], nn.Module]) -> None:
        """Let several devices share each batch from now on, by PyTorch's wrapper of the network."""
        self._model = wrap(self.network)

    def weights(self) -> torch.Tensor:
        """Return all weights and biases as one vector, on the CPU."""
        return torch.cat([one.detach().cpu().flatten() for one in self.network.parameters()])

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Train on one batch; return its loss, on the device.

        Args:
            inputs: shape (batch, 784).
            targets: the correct classes, int64, shape (batch,).
        """
        self._optimizer.zero_grad()
        with self._autocast():
            loss = nn.functional.cross_entropy(self._model(inputs), targets)
        self._scaler.scale(loss).backward()
        self._scaler.step(self._optimizer)
        self._scaler.update()
        return loss.detach()

    @property
    def scale(self) -> float:
        """The factor of the loss that keeps small gradients in range; 1 if none is needed.

        A step whose gradients overflow is skipped, and the next scale is halved.
        """
        return float(self._scaler.get_scale())

    def _autocast(self) -> AbstractContextManager[object]:
        if self._autocast_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self._device.type, dtype=self._autocast_dtype)


def change_error(found: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor) -> float | None:
    """Return the error of the weights after the checked steps, over the norm of their change.

    The reference is one network with the whole batch, in float64; None is no number.

    Args:
        found: all weights and biases as one vector.
        inputs: the whole batch's inputs, on the CPU.
        targets: the whole batch's targets, on the CPU.
    """
    reference = Training(torch.device("cpu"), torch.float64, None)
    before = reference.weights()
    for _ in range(CHECKED_STEPS):
        reference.step(inputs.double(), targets)
    after = reference.weights()
    error = float((found.double() - after).norm() / (after - before).norm())
    return error if math.isfinite(error) else None


def build_network() -> nn.Sequential:
    """Return the network on the CPU, the same every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        return nn.Sequential(
            nn.Linear(INPUTS, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, CLASSES),
        )


NETWORK_LINES = f"""\
model = torch.nn.Sequential(
    torch.nn.Linear({INPUTS}, {HIDDEN}),
    torch.nn.ReLU(),
    torch.nn.Linear({HIDDEN}, {HIDDEN}),
    torch.nn.ReLU(),
    torch.nn.Linear({HIDDEN}, {CLASSES}),
).to(device)
"""


def make_batch(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return inputs, shape (size, 784), and classes, shape (size,), on the CPU.

    The class is the largest of ten fixed sums of the inputs, so that the network can learn it.
    """
    teacher = torch.randn(INPUTS, CLASSES, generator=torch.Generator().manual_seed(_SEED))
    inputs = torch.randn(size, INPUTS, generator=torch.Generator().manual_seed(_SEED))
    return inputs, (inputs @ teacher).argmax(dim=1)


def step_operations(size: int) -> float:
    """Return the number of operations in the products of a step with `size` samples.

    Forward, and backward for the gradients of the weights and of each layer's input: one
    multiplication and addition per term. The gradient of the network's input is not needed.
    """
    weights = sum(inputs * outputs for inputs, outputs in _LAYERS)
    return 2.0 * size * (3 * weights - INPUTS * HIDDEN)


def parameters_count() -> int:
    """Return the number of the network's parameters."""
    return sum(inputs * outputs + outputs for inputs, outputs in _LAYERS)
