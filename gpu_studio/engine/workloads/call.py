"""One call of a workload, ready to be timed, and what it can tell afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.engine.workloads.parts import card_parts_s

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from gpu_studio.engine.workloads.case import Case


class Call(ABC):
    """What is timed: called again and again, then asked, then closed.

    For a plain function see `FunctionCall`, for one of tensors `TensorCall`. A class of its own is
    for work that keeps something (a process, a data set) or has something to tell.
    """

    # Whether many calls may be one sample. An epoch or a call to other processes is a sample.
    is_batched: bool = True

    @abstractmethod
    def __call__(self) -> object:
        """Do the work once. On a card it may return before the card is done."""

    @property
    def function(self) -> Callable[[], object]:
        """What the stopwatch calls in a loop; a plain function saves a tenth of a microsecond."""
        return self

    def elapsed_s(self) -> float | None:
        """Return how long the last call took by a clock of its own; None is the stopwatch's.

        For work whose clock runs elsewhere: in other processes, after they have met.
        """
        return None

    def parts_s(self) -> dict[str, float]:
        """Return the named seconds of one call, in order; asked after the timing, once."""
        return {}

    def curves(self) -> dict[str, tuple[float, ...]]:
        """Return what the work itself produced, by name (``loss``); asked after the timing."""
        return {}

    def findings(self) -> tuple[str, ...]:
        """Return what the work showed, in sentences; asked after the timing."""
        return ()

    def doubts(self) -> dict[str, str]:
        """Return what speaks against what the work showed: sentences, by a word or two each."""
        return {}

    def close(self) -> None:  # noqa: B027 - most calls hold nothing
        """Give back what the call holds: processes, files, global settings. Called once, always.

        Tensors need none of it: they are free when the call is.
        """


class FunctionCall(Call):
    """A function without arguments, which holds its operands itself.

    Args:
        function: what is called.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def __call__(self) -> object:
        """Call the function."""
        return self._function()

    @property
    def function(self) -> Callable[[], object]:
        """The function itself."""
        return self._function


class TensorCall(FunctionCall):
    """A function of tensors that are on the case's device.

    Args:
        case: what is called.
        operands: on the case's device.
        compute: takes them.
        look: says afterwards what the case's function shows.
    """

    def __init__(
        self,
        case: Case,
        operands: tuple[torch.Tensor, ...],
        compute: Callable[..., torch.Tensor],
        look: Callable[[Case, Callable[[], object]], tuple[str, ...]],
    ) -> None:
        # A partial object is called without a frame of Python's.
        super().__init__(partial(compute, *operands))
        self._look = look
        self._case = case
        self._operands = operands
        self._compute = compute

    def parts_s(self) -> dict[str, float]:
        """Return copy in, launch, compute and copy out on a card; nothing on the CPU."""
        if not self._case.is_on_card:
            return {}
        return card_parts_s(self._case.device, self._operands, self._compute)

    def findings(self) -> tuple[str, ...]:
        """Return what the workload sees in the call."""
        return self._look(self._case, self.function)


class TransferringCall(TensorCall):
    """Copies the operands from the CPU's memory to a card, computes, and copies the result back.

    Args:
        case: what is called.
        operands: on the CPU.
        compute: takes them on the case's device.
        look: says afterwards what the case's function shows.
    """

    def __call__(self) -> object:
        """Copy in, compute and copy out; returns when the result is there."""
        return self._compute(*self._moved()).cpu()

    @property
    def function(self) -> Callable[[], object]:
        """The call with its copies."""
        return self

    def parts_s(self) -> dict[str, float]:
        """Return copy in, launch, compute and copy out."""
        return card_parts_s(self._case.device, self._moved(), self._compute)

    def _moved(self) -> tuple[torch.Tensor, ...]:
        return tuple(operand.to(self._case.device) for operand in self._operands)
