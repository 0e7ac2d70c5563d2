"""One call of a workload, ready to be timed, with the findings it has afterwards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING

from gpu_studio.engine.workloads.parts import card_parts_s

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.case import Case


class Call(ABC):
    """The timed work: called repeatedly, then asked for its findings, then closed.

    For a plain function see `FunctionCall`, for a function of tensors `TensorCall`. Derive another
    class for work that holds something (a process, a data set) or has findings.
    """

    # Whether several calls may form one sample. An epoch or a call to other processes is a sample.
    is_batched: bool = True
    # Whether each round makes the call anew: it then says how much its place in memory matters.
    is_made_anew: bool = False

    @abstractmethod
    def __call__(self) -> object:
        """Do the work once. On a card, it may return before the card is done."""

    @property
    def function(self) -> Callable[[], object]:
        """The function to time; a plain function saves a tenth of a microsecond."""
        return self

    def elapsed_s(self) -> float | None:
        """Return the last call's time by the call's own clock; None means the stopwatch's.

        This is for work that is timed elsewhere: in other processes, after they have synchronized.
        """
        return None

    def timed_by(self, stopwatch: Stopwatch) -> Stopwatch:
        """Return the stopwatch for batches of `function`; one may do more around a batch."""
        return stopwatch

    def parts_s(self) -> dict[str, float]:
        """Return the seconds of a call's parts, by name, in order; called once after the timing."""
        return {}

    def curves(self) -> dict[str, tuple[float, ...]]:
        """Return the curves that the work produced, by name (``loss``); called after the timing."""
        return {}

    def findings(self) -> tuple[str, ...]:
        """Return the work's findings as sentences; called after the timing."""
        return ()

    def lessons(self) -> tuple[str, ...]:
        """Return the names of the lessons about what the work falls into; as `findings`."""
        return ()

    def doubts(self) -> dict[str, str]:
        """Return reasons to doubt the findings: sentences, each by a key of a word or two."""
        return {}

    def close(self) -> None:  # noqa: B027 - most calls hold nothing
        """Release processes, files and global settings. Always called, once.

        Tensors do not need this: they are freed with the call.
        """


class FunctionCall(Call):
    """A function without arguments that holds its operands.

    Args:
        function: the function to call.
    """

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function

    def __call__(self) -> object:
        return self._function()

    @property
    def function(self) -> Callable[[], object]:
        return self._function


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
