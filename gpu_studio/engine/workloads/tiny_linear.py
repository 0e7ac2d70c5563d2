"""The smallest model that tutorials move to a GPU: `torch.nn.Linear(10, 10)`.

It is the dumb model of "When to move from CPU to GPU" and the case "CUDA slower than CPU (tiny
model)" of "Chapter 17: Using torch with CUDA". With one output, it is the model of training
tutorials.
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
    """A layer with 10 inputs and 10 or 1 outputs; see `linear_layer.LinearLayer`."""

    description = WorkloadDescription(
        name="tiny_linear",
        title="Tiny model",
        sentence=(
            "A layer that turns ten numbers into ten. Launching such a small operation takes "
            "longer than the operation, so a GPU is slower until the batch is very large."
        ),
        dtypes=DTYPES,
        sizes=(1, 8, 64, 512, 4096, 32768),
        throughput_unit="FLOP/s",
        source="When to move from CPU to GPU; Chapter 17: Using torch with CUDA",
        options=(
            WorkloadOption(
                name="outputs",
                title="Outputs",
                sentence="The number of outputs for ten inputs.",
                values=("10", "1"),
            ),
        ),
        size_title=SIZE_TITLE,
        size_text=SIZE_TEXT,
    )

    def features(self, case: Case) -> tuple[int, int]:
        """Return ten inputs and the chosen number of outputs."""
        return _INPUTS, int(case.options["outputs"])
