"""One batch shared by several cards: is that faster than one card?

"Chapter 17: Using torch with CUDA" (section 17.5) uses DataParallel; "How can I switch from CPU to
GPU PyTorch?" (answer of 2025-01-30) names it beside DistributedDataParallel. The network, the batch
and the step are those of `train_step`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.benchmark.workloads import DATA_PARALLEL
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.device import accelerator, accelerator_state
from gpu_studio.engine.workloads.train_step import TrainStep, TrainStepCall

if TYPE_CHECKING:
    from gpu_studio.engine.verification import Verification
    from gpu_studio.engine.workloads.call import Call
    from gpu_studio.engine.workloads.case import Case, Work
    from gpu_studio.engine.workloads.train_network import Training

_FEWEST_CARDS = 2


class DataParallel(TrainStep):
    """A training step whose batch PyTorch splits; see `train_step.TrainStep`."""

    description = DATA_PARALLEL

    def skipped(self) -> str:
        """Return why no batch can be shared here; empty if it can."""
        there_are = accelerator().count() if accelerator_state().is_available else 0
        if there_are >= _FEWEST_CARDS:
            return ""
        return f"It needs two cards that PyTorch can use. Here, it sees {there_are or 'none'}."

    def check(self, case: Case) -> None:
        cards = int(case.options["cards"])
        if cards > (there_are := accelerator().count()):
            raise StudioError(
                FailureKind.NO_SUCH_DEVICE,
                f"{cards} cards cannot share the batch here: PyTorch sees {there_are}.",
            )

    def work(self, case: Case) -> Work:
        """Count the same step: each card does its part of the products."""
        work, cards = super().work(case), int(case.options["cards"])
        return msgspec.structs.replace(
            work, throughput_work=float(case.size), longest_kernel=work.longest_kernel / cards
        )

    def prepare(self, case: Case) -> Call:
        return DataParallelCall(case, partial(self.training, case))

    def training(self, case: Case) -> Training:
        training = super().training(case)
        training.share(_devices_of(case))
        return training

    def verify(self, case: Case) -> Verification:
        try:
            return super().verify(case)
        except RuntimeError as error:
            if "NCCL" not in str(error):
                raise
            first_line = str(error).splitlines()[0]
            raise StudioError(
                FailureKind.INTERNAL,
                "DataParallel copies the network to the cards by NCCL, which does not work here "
                f"({first_line}).",
            ) from error

    def lines(self, case: Case) -> str:
        indices = [device.index for device in _devices_of(case)]
        return f"model = torch.nn.DataParallel(model, device_ids={indices})\n"


class DataParallelCall(TrainStepCall):
    """Steps of the shared batch; see `train_step.TrainStepCall`."""

    def findings(self) -> tuple[str, ...]:
        shares = sorted(self._training.shares(self._batch[0]))
        parts = ", ".join(f"{rows} on {device}" for device, rows in shares)
        return (
            f"The batch was split: {parts}. PyTorch recommends DistributedDataParallel for long "
            "training: a process for each card, started by torchrun.",
            *super().findings(),
        )


def _devices_of(case: Case) -> list[torch.device]:
    """Return the cards that share the batch: the chosen one first, then the others."""
    others = [index for index in range(accelerator().count()) if index != case.device.index]
    indices = [case.device.index, *others][: int(case.options["cards"])]
    return [torch.device(case.device.type, index) for index in indices]
