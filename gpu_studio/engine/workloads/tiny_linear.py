"""The smallest model that tutorials move to a GPU: `torch.nn.Linear(10, 10)`.

It is the dumb model of "When to move from CPU to GPU", with one output the one of tutorials on
training, and the case of "CUDA slower than CPU (tiny model)" in "Chapter 17: Using torch with
CUDA".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from gpu_studio.core.tensors import DTYPES
from gpu_studio.engine.workloads.linear_layer import SIZE_TEXT, SIZE_TITLE, LinearLayer

if TYPE_CHECKING:
    from gpu_studio.engine.workloads.case import Case

_INPUTS = 10


class TinyLinear(LinearLayer):
    """Ten numbers into ten or one; see `linear_layer.LinearLayer`."""

    description = WorkloadDescription(
        name="tiny_linear",
        title="Tiny model",
        sentence=(
            "A layer that makes ten numbers of ten: so little work that asking for it takes "
            "longer than doing it, and a GPU loses until the batch is very large."
        ),
        dtypes=DTYPES,
        sizes=(1, 8, 64, 512, 4096, 32768),
        throughput_unit="FLOP/s",
        source="When to move from CPU to GPU; Chapter 17: Using torch with CUDA",
        options=(
            WorkloadOption(
                name="outputs",
                title="Outputs",
                sentence="How many numbers the layer makes of ten.",
                values=("10", "1"),
            ),
        ),
        size_title=SIZE_TITLE,
        size_text=SIZE_TEXT,
    )

    def features(self, case: Case) -> tuple[int, int]:
        """Return ten inputs and the chosen outputs."""
        return _INPUTS, int(case.options["outputs"])
