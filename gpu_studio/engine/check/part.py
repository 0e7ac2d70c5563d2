"""One kind of work with a known result: what the compute stage is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from gpu_studio.core.messages.check_messages import FindingKind, Severity
    from gpu_studio.engine.check.detectors import Mismatch
    from gpu_studio.engine.check.stage import StageBench


class Part(ABC):
    """One kind of work with a known result.

    Attributes:
        title: in words.
        kind: of a finding.
        severity: of a finding.
        dtype: the name of the operands' dtype; empty if there is none.
    """

    title: str
    kind: FindingKind = "wrong_result"
    severity: Severity = "error"
    dtype: str = ""

    @abstractmethod
    def prepare(self, bench: StageBench) -> None:
        """Make new inputs and the result that they have to give."""

    @abstractmethod
    def result(self, bench: StageBench) -> Tensor:
        """Do the work on the device and return the result, contiguous and on the CPU."""

    @abstractmethod
    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Return the elements that are wrong."""

    @abstractmethod
    def release(self) -> None:
        """Drop what `prepare` made: there are more than a thousand parts."""
