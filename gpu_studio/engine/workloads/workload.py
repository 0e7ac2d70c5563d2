"""What a workload is: the one thing to implement for a new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

from gpu_studio.engine.workloads.call import Call, TensorCall, TransferringCall
from gpu_studio.engine.workloads.proof import WHOLE_UP_TO

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.protocol import WorkloadDescription
    from gpu_studio.engine.workloads.case import Case, Work
    from gpu_studio.engine.workloads.proof import Verification

CPU = torch.device("cpu")


class Workload(ABC):
    """One kind of work. Every method takes the `Case`, which says where and how large.

    ``description.refuses`` names the modes (``cold``, ``transfers``, ``naive``) in which it makes
    no sense, each with a sentence why. A size above ``small_up_to`` is first checked and timed at
    that size, so that a long call can be announced.
    """

    description: WorkloadDescription
    small_up_to: int = WHOLE_UP_TO
    # Whether cuBLAS multiplies matrices in it: not every card can in every type.
    has_products: bool = False

    def skipped(self) -> str:
        """Return why it cannot run on this PC and what would make it run; empty where it can.

        Asked when the engine describes itself: it makes no CUDA context.
        """
        return ""

    def computes_in(self, case: Case) -> str:
        """Return what its arithmetic is done in: PyTorch's name of a dtype, or ``tf32``.

        What a card reaches at most follows from it.
        """
        return case.dtype_name

    def check(self, case: Case) -> None:  # noqa: B027 - most cases can be done
        """Raise `StudioError` for a case that cannot be done, before anything is allocated."""

    @abstractmethod
    def work(self, case: Case) -> Work:
        """Return what one call does and takes; allocates nothing."""

    @abstractmethod
    def prepare(self, case: Case) -> Call:
        """Make the operands and return one call. The run closes it, whatever happens."""

    def prepare_untried(self, case: Case) -> Call:
        """Make the operands as a script does: nothing of the work has been computed yet."""
        return self.prepare(case)

    @abstractmethod
    def verify(self, case: Case) -> Verification:
        """Compare a device's result with an independent one of the CPU."""

    @abstractmethod
    def snippet(self, case: Case) -> str:
        """Return lines of PyTorch that do and time this work as they stand."""


class TensorWorkload(Workload):
    """Work that takes tensors and returns one, whatever memory they come from.

    The mode with transfers is written here once: the operands then wait in the CPU's memory.
    """

    @abstractmethod
    def operands(self, case: Case) -> tuple[torch.Tensor, ...]:
        """Make what goes in, on the case's device: what a user has to copy to a card."""

    @abstractmethod
    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        """Return the function of the operands; what it keeps (a model) is on the device."""

    def findings(self, case: Case, function: Callable[[], object]) -> tuple[str, ...]:
        """Return what a call shows, in sentences; the timing is over, so it may be looked at."""
        return ()

    def prepare(self, case: Case) -> Call:
        """Make the operands where the mode wants them and return one call."""
        if case.transfers and case.is_on_card:
            operands = self.operands(case.on(CPU))
            return TransferringCall(case, operands, self.compute(case), self.findings)
        return TensorCall(case, self.operands(case), self.compute(case), self.findings)


def wait_lines(address: str) -> str:
    """Return the line of a snippet that waits for a device; empty for the CPU."""
    return f'torch.cuda.synchronize("{address}")\n' if address != "cpu" else ""
