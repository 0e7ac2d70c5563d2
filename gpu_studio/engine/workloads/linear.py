"""A linear layer over a batch of rows: the layers of two documents.

`Linear` is the model of "How can I switch from CPU to GPU PyTorch?" (2025-01-30), Example 1: 1000
rows of 1000 numbers go through `torch.nn.Linear(1000, 500)`. `TinyLinear` is the smallest model
that tutorials move to a GPU: the dumb model of "When to move from CPU to GPU" and the case "CUDA
slower than CPU (tiny model)" of "Chapter 17: Using torch with CUDA". With one output, it is the
model of training tutorials.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import LINEAR, TINY_LINEAR
from gpu_studio.engine.verification import Verification, whole_numbers_compared
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.proof import (
    BLOCK_SIDE,
    EXACT_UP_TO,
    describe_rows,
    fetch_rows,
    misplaced,
    rows_to_check,
    whole_number_factors,
)
from gpu_studio.engine.workloads.workload import TensorWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST_BIAS = 3


class LinearLayer(TensorWorkload):
    """One `torch.nn.Linear`, forward only, without gradients.

    The operand is a batch, shape (size, inputs); the result has shape (size, outputs).
    """

    has_products = True

    @abstractmethod
    def features(self, case: Case) -> tuple[int, int]:
        """Return the layer's inputs and outputs."""

    def work(self, case: Case) -> Work:
        """Count as many additions as multiplications (one for the bias); everything moves once."""
        inputs, outputs = self.features(case)
        operations = 2.0 * case.size * inputs * outputs
        batch_bytes = case.size * inputs * case.item_bytes
        result_bytes = case.size * outputs * case.item_bytes
        layer_bytes = (inputs + 1) * outputs * case.item_bytes
        return Work(
            operations=operations,
            bytes_moved=float(batch_bytes + layer_bytes + result_bytes),
            throughput_work=operations,
            memory_bytes=batch_bytes + layer_bytes + result_bytes,
            host_bytes=case.crossing(batch_bytes + result_bytes),
            link_bytes=case.crossing(max(batch_bytes, result_bytes)),
        )

    def shapes(self, case: Case) -> tuple[tuple[int, ...], ...]:
        return ((case.size, self.features(case)[0]),)

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        return self._layer(case)

    def verify(self, case: Case) -> Verification:
        """Compare bit for bit, with small whole numbers, which are exact in any order."""
        inputs, outputs = self.features(case)
        exact_up_to = EXACT_UP_TO[case.dtype] - _LARGEST_BIAS
        block, weights = whole_number_factors(
            min(case.size, BLOCK_SIDE),
            inputs,
            outputs,
            exact_up_to,
            computed_in=self.computes_in(case),
        )
        bias = torch.arange(outputs) % (2 * _LARGEST_BIAS + 1) - _LARGEST_BIAS
        layer = self._layer(case)
        layer.weight.copy_(weights.T)
        layer.bias.copy_(bias)
        index = torch.arange(case.size) % len(block)
        result = layer(block[index].to(case.device, case.dtype))
        rows = rows_to_check(case.size)
        compared = describe_rows((case.size, 0), rows)
        if wrong_place := misplaced(result, case.device):
            return Verification(False, wrong_place, (compared,))
        # float64 is exact here as well, and far faster than integers.
        chosen = block[index[torch.from_numpy(rows)]]
        expected = chosen.double().numpy() @ weights.double().numpy() + bias.numpy()
        return whole_numbers_compared(fetch_rows(result, rows), expected, "sums", compared)

    def lines(self, case: Case) -> tuple[str, str]:
        inputs, outputs = self.features(case)
        return _MODEL.format(inputs=inputs, outputs=outputs), "model(x)"

    def _layer(self, case: Case) -> torch.nn.Linear:
        inputs, outputs = self.features(case)
        layer = torch.nn.Linear(inputs, outputs, device=case.device, dtype=case.dtype)
        return layer.requires_grad_(False)


_MODEL = """
model = torch.nn.Linear({inputs}, {outputs}, device=device, dtype=dtype)
model.requires_grad_(False)
x = torch.rand(size, {inputs}, device=device, dtype=dtype)
"""


class Linear(LinearLayer):
    """A layer with 1000 inputs and 500 outputs; see `LinearLayer`."""

    description = LINEAR

    def features(self, case: Case) -> tuple[int, int]:
        return 1000, 500


class TinyLinear(LinearLayer):
    """A layer with 10 inputs and 10 or 1 outputs; see `LinearLayer`."""

    description = TINY_LINEAR

    def features(self, case: Case) -> tuple[int, int]:
        return 10, int(case.options["outputs"])
