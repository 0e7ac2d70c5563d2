"""A linear layer over a batch of rows: the base of `tiny_linear` and `linear`."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.engine.workloads.case import Case, Work, product_dtype
from gpu_studio.engine.workloads.exact import EXACT_UP_TO, whole_number_factors
from gpu_studio.engine.workloads.proof import (
    BLOCK_SIDE,
    Verification,
    fetch_rows,
    misplaced,
    rows_to_check,
)
from gpu_studio.engine.workloads.workload import TensorWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_TITLE = "Rows per batch"
SIZE_TEXT = "batch of {size}"
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

    def operands(self, case: Case) -> tuple[torch.Tensor, ...]:
        """Make a batch of random rows."""
        inputs, _ = self.features(case)
        return (torch.rand(case.size, inputs, device=case.device, dtype=case.dtype),)

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        """Return the layer on the device."""
        return self._layer(case)

    def computes_in(self, case: Case) -> str:
        """Return the dtype, or TF32 if PyTorch may use it for products."""
        return product_dtype(case)

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
        compared = (_describe(case.size, len(rows)),)
        if wrong_place := misplaced(result, case.device):
            return Verification(False, wrong_place, compared)
        # float64 is exact here as well, and far faster than integers.
        chosen = block[index[torch.from_numpy(rows)]]
        expected = chosen.double().numpy() @ weights.double().numpy() + bias.numpy()
        wrong = int(np.count_nonzero(fetch_rows(result, rows) != expected))
        finding = "exact for whole numbers"
        if wrong:
            finding = f"{wrong} of {expected.size} sums of whole numbers are wrong"
        return Verification(not wrong, finding, compared)

    def _layer(self, case: Case) -> torch.nn.Linear:
        inputs, outputs = self.features(case)
        layer = torch.nn.Linear(inputs, outputs, device=case.device, dtype=case.dtype)
        return layer.requires_grad_(False)

    def snippet(self, case: Case) -> str:
        """Return a runnable PyTorch script that does and times this work."""
        inputs, outputs = self.features(case)
        return _SNIPPET.format(
            device=case.address,
            size=case.size,
            dtype=case.dtype_name,
            inputs=inputs,
            outputs=outputs,
            wait=wait_line(case.address),
        )


def _describe(size: int, rows: int) -> str:
    noun = "row" if size == 1 else "rows"
    return f"all of {size} {noun}" if rows == size else f"{rows} of {size} {noun}"


_SNIPPET = """\
import time
import torch

size, device, dtype = {size}, "{device}", torch.{dtype}
model = torch.nn.Linear({inputs}, {outputs}, device=device, dtype=dtype)
model.requires_grad_(False)
x = torch.rand(size, {inputs}, device=device, dtype=dtype)

model(x)  # the first call is slower
{wait}start = time.perf_counter()
for _ in range(10):
    model(x)
{wait}print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
"""
