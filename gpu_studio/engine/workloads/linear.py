"""The model of "How can I switch from CPU to GPU PyTorch?" (2025-01-30), Example 1.

There 1000 rows of 1000 numbers go through `torch.nn.Linear(1000, 500)`.
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
    """A thousand numbers into five hundred; see `linear_layer.LinearLayer`."""

    description = WorkloadDescription(
        name="linear",
        title="One layer",
        sentence=(
            "A layer that makes 500 numbers of 1000, as in the middle of many models: with a few "
            "rows reading its weights takes the time, with a thousand the arithmetic does."
        ),
        dtypes=DTYPES,
        sizes=(1, 10, 100, 1000, 10000),
        throughput_unit="FLOP/s",
        source="How can I switch from CPU to GPU PyTorch? (2025-01-30), Example 1",
        size_title=SIZE_TITLE,
        size_text=SIZE_TEXT,
    )

    def features(self, case: Case) -> tuple[int, int]:
        """Return a thousand inputs and five hundred outputs."""
        return _INPUTS, _OUTPUTS
