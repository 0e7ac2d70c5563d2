"""A user's code as a workload: everything after the engine takes it as one of ours."""

from __future__ import annotations

import random
import time
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import OwnCodeOpened, WorkloadDescription, WorkloadOption
from gpu_studio.core.tensors import DTYPES
from gpu_studio.core.units import format_count
from gpu_studio.engine.device import accelerator_of, synchronize
from gpu_studio.engine.own_code.limits import PRINTS, WATCH
from gpu_studio.engine.own_code.observer import CodeFinding, Observer
from gpu_studio.engine.own_code.program import open_program
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import Work
from gpu_studio.engine.workloads.workload import CPU, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.run_messages import OpenOwnCode, OwnCode
    from gpu_studio.engine.own_code.program import OwnProgram
    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.case import Case

_SEED = 20250301
_USUAL_DTYPE = "float32"
# A second call decides whether a result is random; a longer one is made only if results differ.
_LONG_S = 2.0
_MOST_DIFFERENT = 0.01  # whole numbers: the nearest of two may be another one after rounding
_MUCH_PRINTED = 1000  # characters
_NO_WORK = (
    "It computes nothing with PyTorch, so there is nothing to time on a card. It ran once, and "
    "what it printed is shown."
)


class Trial(msgspec.Struct, frozen=True):
    """What one observed call did."""

    numbers: list[torch.Tensor]
    seen: Observer
    seconds: float
    threads: int
    printed: int


class OwnWorkload(Workload):
    """Implements `workload.Workload` for a user's code.

    Args:
        code: the code; raises `StudioError` if it cannot be run.
        dtype: the type of its numbers, as far as a first call has told.
    """

    def __init__(self, code: OwnCode) -> None:
        self.program = open_program(code)
        self.small_up_to = self.program.sizes[0]
        self.description = WorkloadDescription(
            name=code.name,
            title=code.name,
            sentence="Your own code, as it is.",
            dtypes=DTYPES,
            sizes=self.program.sizes,
            throughput_unit="FLOP/s" if self.program.function("operations") else "runs/s",
            options=(
                WorkloadOption(
                    name="version",
                    title="Version",
                    sentence="The beginning of your code's checksum.",
                    values=(code.version,),
                ),
            ),
            size_title="Size" if self.program.takes_size else "This code has one size",
            size_text="size {size}" if self.program.takes_size else "one size",
            refuses={
                "transfers": "Your code makes its own copies. They are part of its time.",
                "naive": "Your code has its own stopwatch if it prints a time.",
            },
        )
        self._shown: set[torch.device] = set()
        self._reference: tuple[int, Trial] | None = None
        self._trials: dict[torch.device, Trial] = {}

    def work(self, case: Case) -> Work:
        """Count what its own functions say."""
        operations = self._counted("operations", case.size)
        return Work(
            operations=operations or 0.0,
            bytes_moved=self._counted("bytes_moved", case.size) or 0.0,
            throughput_work=operations or 1.0,
            memory_bytes=0,
            longest_kernel=0.0,
        )

    def _counted(self, name: str, size: int) -> float | None:
        function = self.program.function(name)
        if function is None:
            return None
        counted = self.program.watched(CPU, lambda: float(function(size)))()
        return counted if 0 < counted < 1e30 else None

    def prepare(self, case: Case) -> OwnCall:
        return OwnCall(self, case)

    def trial(self, device: torch.device, size: int) -> Trial:
        """Return what one call does, with the same random numbers on every device."""
        _warm()
        seed()
        PRINTS.is_muted = device in self._shown
        self._shown.add(device)
        call = self.program.call(device, size)
        began_s = time.perf_counter()
        with Observer(device) as seen:
            numbers = call.tried()
            synchronize(device)
        seconds = time.perf_counter() - began_s
        if not numbers and seen.last is not None:
            numbers = [seen.last]
        return Trial(numbers, seen, seconds, call.threads, call.printed)

    def verify(self, case: Case) -> Verification:
        """Compare a card's result with the CPU's, and the CPU's with that of a second call."""
        reference = self._reference_at(case.size)
        self._trials[CPU] = reference
        compared = (_named(reference.numbers),)
        if not case.is_on_card:
            return self._verify_cpu(case, reference, compared)
        found = self.trial(case.device, case.size)
        self._trials[case.device] = found
        if not reference.numbers:
            return _unchecked("it returns nothing that can be compared")
        wrong, finding = difference(found.numbers, reference.numbers)
        if wrong and self._is_random(reference, case.size):
            return _unchecked("its result differs from run to run, so nothing can be compared")
        return Verification(not wrong, finding, compared)

    def _verify_cpu(self, case: Case, found: Trial, compared: tuple[str, ...]) -> Verification:
        if not found.numbers:
            return _unchecked("it returns nothing that can be compared")
        if found.seconds < _LONG_S and self._is_random(found, case.size):
            return _unchecked("its result differs from run to run, so nothing can be compared")
        return Verification(True, "the CPU's result, which a card's is compared with", compared)

    def _is_random(self, first: Trial, size: int) -> bool:
        return difference(self.trial(CPU, size).numbers, first.numbers)[0]

    def _reference_at(self, size: int) -> Trial:
        if self._reference is None or self._reference[0] != size:
            self._reference = None  # its tensors first
            self._reference = size, self.trial(CPU, size)
        return self._reference[1]

    def findings(self, case: Case) -> list[CodeFinding]:
        """Return what is said about the last observed call on a device."""
        trial = self.seen_on(case.device)
        if trial is None:
            return []
        is_slow = case.is_on_card and _is_slow_in_float64(case.device)
        findings = [*map(CodeFinding, self.program.remarks)]
        findings += trial.seen.findings(is_slow_in_float64=is_slow)
        if trial.printed > _MUCH_PRINTED:
            count = format_count(trial.printed)
            findings.append(
                CodeFinding(f"It prints {count} characters in each run. That takes time.")
            )
        return findings

    def seen_on(self, device: torch.device) -> Trial | None:
        """Return the last observed call on a device."""
        return self._trials.get(device)

    def snippet(self, case: Case) -> str:
        """Return the user's own text."""
        return self.program.text


class OwnCall(Call):
    """A call of a user's code in a run.

    Args:
        workload: knows what was seen.
        case: the case.
    """

    def __init__(self, workload: OwnWorkload, case: Case) -> None:
        WATCH.is_running = PRINTS.is_muted = True
        self._workload, self._case = workload, case
        self._call = workload.program.call(case.device, case.size)

    def __call__(self) -> object:
        return self._call()

    @property
    def function(self) -> Callable[[], object]:
        return self._call.plain

    def timed_by(self, stopwatch: Stopwatch) -> Stopwatch:
        return _WatchedStopwatch(stopwatch, self._workload.program, self._case.device)

    def findings(self) -> tuple[str, ...]:
        return tuple(map(str, self._workload.findings(self._case)))

    def lessons(self) -> tuple[str, ...]:
        found = (one.lesson for one in self._workload.findings(self._case))
        return tuple(one.name for one in found if one is not None)

    def doubts(self) -> dict[str, str]:
        trial = self._workload.seen_on(self._case.device)
        doubts = {}
        if trial is not None and trial.seen.operations and not trial.seen.is_on_device:
            doubts["not on the card"] = "none of it is computed on the card"
        if trial is not None and trial.threads:
            doubts["threads"] = "it leaves threads that go on while the other side is timed"
        return doubts

    def close(self) -> None:
        """Look no longer whether a call goes on."""
        WATCH.is_running = False


class _WatchedStopwatch:
    """Looks at each batch as a whole, so that nothing but the code is in the timed region."""

    def __init__(self, stopwatch: Stopwatch, program: OwnProgram, device: torch.device) -> None:
        self._time = program.watched(device, stopwatch.time)

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        timed: tuple[float, float] = self._time(call, calls)
        return timed


@lru_cache(maxsize=2)
def own_workload(code: OwnCode) -> OwnWorkload:
    """Return the workload of a code; raises `StudioError` if it cannot be run."""
    return OwnWorkload(code)


def open_own_code(request: OpenOwnCode) -> OwnCodeOpened:
    """Return what there is to choose for a code, after one call on the CPU at its smallest size.

    Raises:
        StudioError: it cannot be run, or it failed; the sentence names the line.
    """
    _warm()
    WATCH.is_running = True
    try:
        workload = own_workload(request.code)
        trial = workload.trial(CPU, workload.program.sizes[0])
    finally:
        WATCH.is_running = False
    if not trial.seen.operations:
        raise StudioError(FailureKind.OWN_CODE, _NO_WORK)
    common = [name for name, _ in trial.seen.dtypes.most_common() if name in DTYPES]
    dtype = common[0] if common else _USUAL_DTYPE
    return OwnCodeOpened(
        workload=msgspec.structs.replace(workload.description, dtypes=(dtype,)),
        call_s=trial.seconds,
        remarks=workload.program.remarks,
    )


def difference(found: list[torch.Tensor], expected: list[torch.Tensor]) -> tuple[bool, str]:
    """Return whether results differ by more than their type explains, and a finding.

    Floating-point results agree if half of the digits of the shorter type do, as a whole: sums in
    another order lose some, a wrong result all of them.
    """
    if len(found) != len(expected):
        return True, f"{len(found)} results instead of {len(expected)}"
    worst, allowed = 0.0, 0.0
    for one, other in zip(found, expected, strict=True):
        if one.shape != other.shape:
            return True, f"the shape is {tuple(one.shape)}, not {tuple(other.shape)}"
        here, there = one.cpu(), other.cpu()
        if not (here.is_floating_point() or here.is_complex()):
            wrong = float((here != there).double().mean()) if here.numel() else 0.0
            if wrong > _MOST_DIFFERENT:
                return True, f"{wrong:.0%} of the whole numbers differ"
            continue
        off, within = _distance(here, there), torch.finfo(here.dtype).eps ** 0.5
        if off > within:
            return True, f"off by {off:.1e} of the result; rounding explains {within:.1e}"
        worst, allowed = max(worst, off), max(allowed, within)
    return False, f"within rounding of the CPU's ({worst:.1e} of {allowed:.1e})"


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the norm of the difference over that of the second; numbers that are none agree."""
    kind = torch.complex128 if one.is_complex() else torch.float64
    here, there = one.to(kind).flatten(), other.to(kind).flatten()
    finite = torch.isfinite(there)
    if not torch.equal(finite, torch.isfinite(here)):
        return float("inf")
    here, there = here[finite], there[finite]
    norm = float(torch.linalg.vector_norm(there))
    return float(torch.linalg.vector_norm(here - there)) / norm if norm else float(here.any())


def _named(numbers: list[torch.Tensor]) -> str:
    count = sum(one.numel() for one in numbers)
    return f"all {format_count(count)} numbers of its result" if count != 1 else "its result"


def _unchecked(reason: str) -> Verification:
    return Verification(None, reason, ("nothing",))


def _is_slow_in_float64(device: torch.device) -> bool:
    """Return whether a card's own rate in float64 is a small part of that in float32."""
    from gpu_studio.core.devices.peaks import card_peaks

    capability = accelerator_of(device).card(device.index).compute_capability
    peaks = card_peaks(capability, 1, 1.0, None, None) if capability else None
    if peaks is None:
        return False
    rates = peaks.arithmetic_flops
    return 0 < rates.get("float64", 0.0) < rates.get("float32", 0.0) / 8


@cache
def _warm() -> None:
    """Let PyTorch load what an observer needs, which takes seconds, before a first call."""
    with Observer(CPU):
        torch.ones(1).neg()


def seed() -> None:
    """Let every draw begin at the same place."""
    torch.manual_seed(_SEED)
    random.seed(_SEED)
    np.random.seed(_SEED)  # noqa: NPY002  # the generator that a user's code may draw from
