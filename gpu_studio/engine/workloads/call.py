"""One call of a workload, ready to be timed, with the findings it has afterwards. No torch here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from gpu_studio.engine.stopwatch import Stopwatch


class Call(ABC):
    """The timed work: called repeatedly, then asked for its findings, then closed.

    For a plain function see `FunctionCall`, for a function of tensors `workload.TensorCall`. Derive
    another class for work that holds something (a process, a data set) or has findings.
    """

    # Whether several calls may form one sample. An epoch or a call to other processes is a sample.
    is_batched: bool = True
    # Whether each round makes the call anew: it then says how much its place in memory matters.
    is_made_anew: bool = False
    # Whether other processes do the work, in memory of their own.
    is_elsewhere: bool = False

    @abstractmethod
    def __call__(self) -> object:
        """Do the work once. On a card, it may return before the card is done."""

    @property
    def function(self) -> Callable[[], object]:
        """The function to time; a plain function saves a tenth of a microsecond."""
        return self

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


class Drawing(Call):
    """A picture in progress; each call is one step."""

    @abstractmethod
    def restart(self) -> None:
        """Return to the picture before the first step; the next step is the same every time."""

    @abstractmethod
    def measure(self) -> float:
        """Return how far the picture is, in the unit of the finish line. Waits for the device."""

    @abstractmethod
    def pixels(self) -> NDArray[np.uint8] | None:
        """Return the picture, shape (height, width, 3), or None. Waits for the device."""
