"""The base class of a workload: implement it to add a new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

from gpu_studio.engine.workloads.call import Call, TensorCall, TransferringCall
from gpu_studio.engine.workloads.proof import WHOLE_UP_TO

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.engine.workloads.case import Case, Work
    from gpu_studio.engine.workloads.proof import Verification

CPU = torch.device("cpu")


class Workload(ABC):
    """One kind of work. Every method takes the `Case`: the device, the size and the options.

    ``description.refuses`` has the modes (``cold``, ``transfers``, ``naive``) that make no sense
    for it, each with a sentence why. A size above ``small_up_to`` is first checked and timed at
    that smaller size, so that a long call can be announced.
    """

    description: WorkloadDescription
    small_up_to: int = WHOLE_UP_TO
    # Whether cuBLAS multiplies matrices in it: not every card can in every type.
    has_products: bool = False

    def skipped(self) -> str:
        """Return why it cannot run on this PC, and what would help; empty if it can.

        Called when the engine describes itself, so it must not create a CUDA context.
        """
        return ""

    def computes_in(self, case: Case) -> str:
        """Return the dtype of the arithmetic: PyTorch's name of it, or ``tf32``.

        A card's theoretical peak depends on it.
        """
        return case.dtype_name

    def check(self, case: Case) -> None:  # noqa: B027 - most cases can be done
        """Raise `StudioError` for an impossible case, before anything is allocated."""

    @abstractmethod
    def work(self, case: Case) -> Work:
        """Return the work and memory of one call; allocates nothing."""

    @abstractmethod
    def prepare(self, case: Case) -> Call:
        """Make the operands and return one call. The run always closes it."""

    def prepare_untried(self, case: Case) -> Call:
        """Make the operands as a script does: nothing of the work has been computed yet."""
        return self.prepare(case)

    @abstractmethod
    def verify(self, case: Case) -> Verification:
        """Compare a device's result with an independent result from the CPU."""

    @abstractmethod
    def snippet(self, case: Case) -> str:
        """Return a runnable PyTorch script that does and times this work."""


class TensorWorkload(Workload):
    """Work that takes tensors and returns a tensor.

    This class implements the mode with transfers, in which the operands wait in CPU memory.
    """

    @abstractmethod
    def operands(self, case: Case) -> tuple[torch.Tensor, ...]:
        """Make the operands on the case's device: the tensors that a user has to copy to a card."""

    @abstractmethod
    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        """Return the function of the operands; anything it holds (a model) is on the device."""

    def findings(self, case: Case, function: Callable[[], object]) -> tuple[str, ...]:
        """Return the findings of a call as sentences; this runs after the timing."""
        return ()

    def prepare(self, case: Case) -> Call:
        """Make the operands in the memory that the mode needs, and return one call."""
        if case.transfers and case.is_on_card:
            operands = self.operands(case.on(CPU))
            return TransferringCall(case, operands, self.compute(case), self.findings)
        return TensorCall(case, self.operands(case), self.compute(case), self.findings)
