"""The base class of a workload: implement it to add a new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.engine.workloads.call import FunctionCall
from gpu_studio.engine.workloads.case import product_dtype
from gpu_studio.engine.workloads.parts import card_parts_s
from gpu_studio.engine.workloads.proof import WHOLE_UP_TO, verify_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.engine.verification import Verification
    from gpu_studio.engine.workloads.call import Call
    from gpu_studio.engine.workloads.case import Case, Work

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
        return product_dtype(case) if self.has_products else case.dtype_name

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
    """Work that takes tensors and returns a tensor, row by row.

    A new one has its `shapes` (by default one square matrix), its function (`compute`), the same
    function in NumPy (`reference`) with the error that rounding explains (`tolerance_eps`), its
    counts (`work`) and the lines of PyTorch that do it (`lines`). This class draws the operands,
    verifies, times the transfers and makes the script. Work whose results come from several rows
    verifies itself.
    """

    tolerance_eps: float = 0.0

    def shapes(self, case: Case) -> tuple[tuple[int, ...], ...]:
        """Return the operands' shapes; the first dimension of each is the size."""
        return ((case.size, case.size),)

    def operands(self, case: Case) -> tuple[torch.Tensor, ...]:
        """Make the operands on the case's device: the tensors that a user has to copy to a card."""
        return tuple(
            torch.rand(shape, device=case.device, dtype=case.dtype) for shape in self.shapes(case)
        )

    @abstractmethod
    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        """Return the function of the operands; anything it holds (a model) is on the device."""

    def reference(self, *rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the result's rows for the same rows of all operands, computed in float64."""
        raise NotImplementedError

    @abstractmethod
    def lines(self, case: Case) -> tuple[str, str]:
        """Return the lines that make the operands, and the statement that is timed."""

    def findings(self, case: Case, function: Callable[[], object]) -> tuple[str, ...]:
        """Return the findings of a call as sentences; this runs after the timing."""
        return ()

    def prepare(self, case: Case) -> Call:
        """Make the operands in the memory that the mode needs, and return one call."""
        if case.transfers and case.is_on_card:
            operands = self.operands(case.on(CPU))
            return TransferringCall(case, operands, self.compute(case), self.findings)
        return TensorCall(case, self.operands(case), self.compute(case), self.findings)

    def verify(self, case: Case) -> Verification:
        """Compare rows with the reference, within `tolerance_eps` of the dtype's eps."""
        # The reference rounds as well, which matters only if the device computes in float64.
        eps = torch.finfo(case.dtype).eps + torch.finfo(torch.float64).eps
        return verify_rows(
            case, self.shapes(case), self.compute(case), self.reference, self.tolerance_eps * eps
        )

    def snippet(self, case: Case) -> str:
        """Return a runnable PyTorch script that does and times this work."""
        return timed_script(case, *self.lines(case))


class TensorCall(FunctionCall):
    """A function of tensors on the case's device.

    Args:
        case: the case.
        operands: tensors on the case's device.
        compute: the function of the operands.
        look: returns the findings afterwards.
    """

    is_made_anew = True

    def __init__(
        self,
        case: Case,
        operands: tuple[torch.Tensor, ...],
        compute: Callable[..., torch.Tensor],
        look: Callable[[Case, Callable[[], object]], tuple[str, ...]],
    ) -> None:
        # Calling a partial object needs no Python frame.
        super().__init__(partial(compute, *operands))
        self._look = look
        self._case = case
        self._operands = operands
        self._compute = compute

    def parts_s(self) -> dict[str, float]:
        if not self._case.is_on_card:
            return {}
        return card_parts_s(self._case.device, self._operands, self._compute)

    def findings(self) -> tuple[str, ...]:
        return self._look(self._case, self.function)


class TransferringCall(TensorCall):
    """Copies the operands from CPU memory to a card, computes, and copies the result back.

    Args:
        case: the case.
        operands: tensors on the CPU.
        compute: the function of the operands, on the case's device.
        look: returns the findings afterwards.
    """

    def __call__(self) -> object:
        """Copy in, compute and copy out; return when the result has arrived."""
        return self._compute(*self._moved()).cpu()

    @property
    def function(self) -> Callable[[], object]:
        return self

    def parts_s(self) -> dict[str, float]:
        return card_parts_s(self._case.device, self._moved(), self._compute)

    def _moved(self) -> tuple[torch.Tensor, ...]:
        return tuple(operand.to(self._case.device) for operand in self._operands)


def timed_script(case: Case, setup: str, call: str, calls: int = 10) -> str:
    """Return a runnable script: its first lines, then a statement that is timed.

    Args:
        case: the size, the device and the dtype, which the lines know by these names.
        setup: the lines before the first call.
        call: the statement.
        calls: how often it is timed.
    """
    setup = setup.strip("\n")
    is_function_last = setup.rpartition("\n")[2].startswith(" ")
    return _SCRIPT.format(
        size=case.size,
        device=case.address,
        dtype=case.dtype_name,
        setup=setup + "\n" * is_function_last,
        call=call,
        wait=wait_line(case.address),
        calls=calls,
    )


_SCRIPT = """\
import time
import torch

size, device, dtype = {size}, "{device}", torch.{dtype}
{setup}

{call}  # the first call is slower
{wait}start = time.perf_counter()
for _ in range({calls}):
    {call}
{wait}print(f"{{(time.perf_counter() - start) / {calls}:.9f}} s a call")
"""
