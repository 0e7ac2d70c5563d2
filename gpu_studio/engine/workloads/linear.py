"""The model of "How can I switch from CPU to GPU PyTorch?" (2025-01-30), Example 1.

In it, 1000 rows of 1000 numbers go through `torch.nn.Linear(1000, 500)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import WorkloadDescription
from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.workloads.linear_layer import SIZE_TEXT, SIZE_TITLE, LinearLayer

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case

_INPUTS, _OUTPUTS = 1000, 500


class Linear(LinearLayer):
    """A layer with 1000 inputs and 500 outputs; see `linear_layer.LinearLayer`."""

    description = WorkloadDescription(
        name="linear",
        title="One layer",
        sentence=(
            "A layer that turns 1000 numbers into 500, as in the middle of many models. With a few "
            "rows, reading its weights takes the time; with a thousand rows, the arithmetic does."
        ),
        dtypes=DTYPES,
        sizes=(1, 10, 100, 1000, 10000),
        throughput_unit="FLOP/s",
        source="How can I switch from CPU to GPU PyTorch? (2025-01-30), Example 1",
        size_title=SIZE_TITLE,
        size_text=SIZE_TEXT,
    )

    def features(self, case: Case) -> tuple[int, int]:
        """Return 1000 inputs and 500 outputs."""
        return _INPUTS, _OUTPUTS
