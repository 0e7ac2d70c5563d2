"""Kinds of work with known results, and how they are tested in turns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.failure import FailureKind, first_line
from gpu_studio.core.units import format_count
from gpu_studio.engine.device import refuse_dtype
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.check_messages import FindingKind
    from gpu_studio.engine.check.detectors import Mismatch
    from gpu_studio.engine.check.stage import StageBench

_REPEATS = 3
_NAMED_KINDS = 6


class Part(ABC):
    """One kind of work with a known result.

    Attributes:
        title: in words.
        kind: of a finding.
        dtype: the name of the operands' dtype; empty if there is none.
    """

    title: str
    kind: FindingKind = "wrong_result"
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


class PartWork:
    """Parts, tested in turns.

    Args:
        bench: gets the findings.
        parts: what to test.

    Attributes:
        parts: those that the device supports, as far as is known.
        results: the number of results so far.
        rounds: how often every part was tested.
    """

    def __init__(self, bench: StageBench, parts: list[Part]) -> None:
        self._bench = bench
        self.parts = parts
        self.results = self.rounds = 0
        self._tested: set[Part] = set()
        self._before: dict[Part, Tensor] = {}
        self._lacking: list[tuple[Part, str]] = []
        self._has_library = True

    @property
    def tested(self) -> str:
        """What was tested so far, in words; empty if nothing was."""
        if not self.results:
            return ""
        dtypes = len({part.dtype for part in self._tested} - {""})
        return (
            f"{counted(len(self._tested), 'kind')} of work in {counted(dtypes, 'dtype')}, "
            f"{counted(self.results, 'result')}, all compared"
        )

    def round(self) -> Iterator[str]:
        """Test each part once, unless the time is over; yield its title before it."""
        for part in list(self.parts):
            if self._bench.is_over(has_tested_all=self.rounds > 0):
                return
            yield part.title
            if self._bench.is_stopped:
                return
            if self._test(part):
                self.results += 1
                self._tested.add(part)
            else:
                self.parts.remove(part)
        self.rounds += 1
        self._report_lacking()

    def _test(self, part: Part) -> bool:
        """Test a part once; return False if the device does not support it."""
        try:
            self._compare(part)
        except Exception as error:
            failure = failure_of(error)
            if failure.fatal or failure.kind in (FailureKind.OUT_OF_MEMORY, FailureKind.NO_KERNEL):
                raise
        else:
            return True
        return self._goes_on(part, failure)

    def _goes_on(self, part: Part, failure: Failure) -> bool:
        """Test a part without cuDNN if that is what failed; else note that it is lacking."""
        reason = first_line(failure.cause or failure.message, 200)
        if failure.kind is FailureKind.LIBRARY_UNSUPPORTED and self._has_library:
            self._has_library = False
            self._bench.report(
                "could_not_run", "note",
                f"{part.title}: {reason} The rest of this stage runs without cuDNN.",
            )  # fmt: skip
            return self._test(part)
        is_known = failure.kind in (FailureKind.DTYPE_UNSUPPORTED, FailureKind.LIBRARY_UNSUPPORTED)
        if is_known:
            self._lacking.append((part, reason))
        else:
            self._bench.report("could_not_run", "doubt", f"{part.title} could not run: {reason}")
        return False

    def _compare(self, part: Part) -> None:
        cudnn = torch.backends.cudnn
        with cudnn.flags(enabled=cudnn.enabled and self._has_library), torch.no_grad():
            if part.dtype:
                refuse_dtype(self._bench.device, getattr(torch, part.dtype))
            part.prepare(self._bench)
            seen = part.result(self._bench)
            before = self._before.get(part)
            if self._bench.plant.kind is not None:
                self._before[part] = seen.clone()
            self._bench.plant.corrupt(seen, before)
            found = part.wrong(seen)
            if found is not None:
                self._report(part, found)

    def _report_lacking(self) -> None:
        """Report what this PyTorch lacks on this device, once for each reason."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for part, reason in self._lacking:
            by_reason.setdefault((part.dtype, reason), []).append(part.title)
        self._lacking.clear()
        for (_, reason), titles in by_reason.items():
            named = ", ".join(titles[:_NAMED_KINDS])
            more = f" and {len(titles) - _NAMED_KINDS} more" if len(titles) > _NAMED_KINDS else ""
            self._bench.report("could_not_run", "note", f"{named}{more}: {reason}")

    def _report(self, part: Part, found: Mismatch) -> None:
        """Repeat the same work, and report whether the error comes back."""
        again = [part.result(self._bench) for _ in range(_REPEATS)]
        for seen in again:
            self._bench.plant.corrupt(seen)
        came_back = sum(part.wrong(seen) is not None for seen in again)
        times = "each time" if came_back == _REPEATS else f"{came_back} of {_REPEATS} times"
        where = f" ({found.where})" if found.where else ""
        self._bench.report(
            part.kind, "error",
            f"{part.title}: wrong in {format_count(found.count)} of {format_count(found.total)} "
            f"elements{where}. The same work, repeated, was wrong {times}.",
            count=found.count, came_back=came_back > 0,
        )  # fmt: skip


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{format_count(count)} {noun}{'s' * (count != 1)}"
